import { clockNow, currency, permalink, useAnswer } from '../api'
import { age, amount, clock, count, middle, money, percent, plural } from '../format'
import { owner, sentence, stateOf } from '../names'
import { Command, Pairs, PlainTable, Tag } from '../parts/basics'
import { Drawer } from '../parts/drawer'
import { go, href, param } from '../route'
import { utc } from '../settings'
import type { Choice, Decision, PodDetail, Rejection, ScoreMatrix, Shortfall } from '../types'
import { expected } from './now'

const at = (t: string | undefined) => clock(t, utc.value === 'true', clockNow.value)

/** PodDrawer is why a pod is where it is, or nowhere. */
export function PodDrawer() {
  const name = param('pod')
  const { data: p, error } = useAnswer<PodDetail>(name ? `pods/${name}` : undefined, {}, { every: 4000 })
  if (!name) return null
  return <Drawer title={name} close={() => go({ pod: undefined })}>{error && <p class="bad">{error}</p>}{p ? <Pod of={p} /> : !error && <p class="loading">Loading…</p>}</Drawer>
}

function Pod({ of: p }: { of: PodDetail }) {
  const [text, tone] = stateOf(p.state)
  return (
    <>
      <section>
        <p><Tag tone={tone}>{text}</Tag> {p.node && <a href={href('nodes', { node: p.node })}>{p.node}</a>}</p>
        {p.message && <p>{p.message}</p>}
        <Pairs of={[
          ['workload', owner(p.owner)], ['created', p.created && `${at(p.created)} (${age(p.created, clockNow.value)} ago)`],
          ['requests', p.requests?.map(r => `${r.resource} ${amount(r.resource, r.quantity)}`).join(', ')],
          ['priority', p.priority], ['scheduler', p.scheduler],
          ['pod group', p.podGroup && <a href={href('podgroups', { pg: `${p.namespace}/${p.podGroup}` })}>{p.podGroup}</a>],
          ['queue', p.queue && `${p.queue}${p.attempts ? `, ${plural(p.attempts, 'attempt')}` : ''}${p.tried ? `, last tried ${at(p.tried)}` : ''}`],
          ['next try', p.backoff && at(p.backoff)],
          ['nominated', p.nominated && <a href={href('nodes', { node: p.nominated })}>{p.nominated}</a>],
          ['victims', p.victims?.join(', ')], ['preemption', p.preemption],
          ['permits', p.permissions?.map(x => `${x.plugin} until ${at(x.until)}`).join(', ')],
        ]} />
      </section>
      {p.helps && p.helps.length > 0 && <section><h3>What would help</h3><ul class="items">{p.helps.map(h => <li><span class="what">{h.text}</span></li>)}</ul></section>}
      {p.rejections && p.rejections.length > 0 && <section><h3>Why not elsewhere</h3>
        <Rejections of={p.rejections} /></section>}
      {p.matrix && p.matrix.nodes.length > 0 && <section><h3>{p.node ? 'Scores, as if it were placed now' : 'Scores of the best nodes'}</h3><Matrix of={p.matrix} placed={!!p.node} /></section>}
      {p.scaling && <section><h3>Node groups</h3>
        {p.scaling.notPlanned && <p>{p.scaling.notPlanned}{p.scaling.nextPlan && ` Next plan: ${at(p.scaling.nextPlan)}.`}</p>}
        {p.scaling.coming && <p>{p.scaling.coming.node ? <>Waits for <a href={href('nodes', { node: p.scaling.coming.node })}>{p.scaling.coming.node}</a></> : <>Waits for a node of <a href={href('groups', { g: p.scaling.coming.group })}>{p.scaling.coming.group}</a></>} <span class="soft">{expected(p.scaling.coming, clockNow.value)}</span></p>}
        {p.scaling.weighed && <p>{p.scaling.weighed}</p>}{p.scaling.event && <p class="soft">{p.scaling.event}</p>}
        {p.scaling.groups && p.scaling.groups.length > 0 && <PlainTable caption="What node groups answer" head={['group', 'answer', 'why']}
          rows={p.scaling.groups.map(g => [<a href={href('groups', { g: g.group })}>{g.group}</a>, g.answer, [...(g.reasons ?? []), g.detail, ...(g.missing ?? []).map(shortfall)].filter(Boolean).join('; ')])} />}
        {p.scaling.ordered?.choice && <Options of={p.scaling.ordered.choice} />}</section>}
      {p.timeline.length > 0 && <section><h3>Timeline</h3><ul class="items">{p.timeline.map(e => ({ ...e, text: p.decisions.filter(d => d.seq === e.seq && d.text).map(sentence)[0] ?? e.text })).map(e => <li><span class="when">{at(e.at)}</span><span class="what"><strong>{e.kind}</strong> {e.seq ? <a href={href('decisions', permalink(e.seq))}>{e.text ?? `#${e.seq}`}</a> : e.text}</span></li>)}</ul></section>}
      {(p.hidden ?? 0) > 0 && <p class="soft">{plural(p.hidden!, 'pod')} of namespaces that you may not read {p.hidden === 1 ? 'is' : 'are'} left out.</p>}
      <section><h3>On a terminal</h3><Command line={`kubectl berth explain pod ${p.name} -n ${p.namespace}`} /></section>
    </>
  )
}

/** Rejections is how many nodes which rule rejects, and why. */
export const Rejections = ({ of }: { of: Rejection[] }) => <PlainTable caption="Why nodes are rejected" head={['nodes', 'rule', 'reason']} nums={[0]}
  rows={of.map(r => [count(r.nodes), r.plugin, <>{r.message}{r.short && <span class="soft"> {shortfall(r.short)}</span>}</>])} />

const shortfall = (s: Shortfall) => `${s.resource}: needs ${amount(s.resource, s.needed)}, ${amount(s.resource, s.available)} free${s.node ? ` on ${s.node}` : ''}`

/** Matrix has the scores of the best nodes by plugin. The chosen one is marked and first. placed says that the pod is there already,
 * so that the scores are those of now and not those by which it was placed. */
export function Matrix({ of: m, placed }: { of: ScoreMatrix; placed: boolean }) {
  const most = Math.max(1, ...m.rows.flatMap(r => r.scores))
  const order = m.nodes.map((_, i) => i).sort((a, b) => Number(b === m.chosen) - Number(a === m.chosen)) // the pod's node first
  const later = placed && m.totals.some(t => t > (m.totals[m.chosen] ?? Infinity))
  return (
    <>{later && <p class="soft">Another node scores higher now: scores have changed since the pod was placed.</p>}
    <div class="wide" tabIndex={0} role="group" aria-label="Scores"><table class="plain scores">
      <caption class="hidden">Scores by plugin and node</caption>
      <thead><tr><th scope="col">plugin</th>{order.map(i => <th scope="col" class="num"><a href={href('nodes', { node: m.nodes[i]! })} title={m.nodes[i]}>{middle(m.nodes[i]!, 22)}</a>{i === m.chosen && <><br /><Tag tone="good">{placed ? 'its node' : 'chosen'}</Tag></>}</th>)}</tr></thead>
      <tbody>
        {m.rows.map(r => <tr><th scope="row">{r.plugin.split(/(?=[A-Z])/).map(part => <>{part}<wbr /></>)}</th>{order.map(i => r.scores[i]!).map(s => <td class="num" style={{ background: `color-mix(in srgb, var(--accent) ${Math.round((s / most) * 30)}%, transparent)` }}>{s}</td>)}</tr>)}
        <tr><th scope="row">total</th>{order.map(i => m.totals[i]!).map(t => <td class="num"><strong>{t}</strong></td>)}</tr>
      </tbody>
    </table></div></>
  )
}

/** Options is what an order was chosen from. */
export function Options({ of: c }: { of: Choice }) {
  return (
    <>
      <p class="soft">Ordered by plan number {c.plan}{c.by ? `, chosen by ${c.by}` : ''}{c.unpriced ? '; no option has a price' : ''}{c.next ? `; next best: ${plural(c.next.nodes, 'node')} of ${c.next.group} for ${money(c.next.price, currency.value)}` : ''}{c.lowerBound ? `; any purchase for these pods costs ${money(c.lowerBound, currency.value)} at least` : ''}</p>
      {c.options && c.options.length > 0 && <PlainTable caption="Options" head={['group', 'nodes', 'pods', 'unused', 'price', '']} nums={[1, 2, 3, 4]}
        rows={c.options.map(o => [<><a href={href('groups', { g: o.group })}>{o.group}</a>{o.with?.length ? ` with ${o.with.join(', ')}` : ''}</>, count(o.nodes), count(o.pods), percent(o.unused), o.price ? money(o.price, currency.value) : '–', o.chosen ? <Tag tone="good">chosen</Tag> : ''])} />}
    </>
  )
}

/** folded are decisions, the newest first, each with how often it was made in a row. Pure. */
export function folded(of: Decision[]): { d: Decision; times: number }[] {
  const out: { d: Decision; times: number }[] = []
  for (const d of [...of].reverse()) {
    const last = out.at(-1)
    if (last && sentence(last.d) === sentence(d)) last.times++
    else out.push({ d, times: 1 })
  }
  return out
}

/** DecisionLines are decisions in a drawer, the newest first. */
export function DecisionLines({ of }: { of: Decision[] }) {
  if (of.length === 0) return <p class="soft">None is kept.</p>
  return <ul class="items">{folded(of).map(({ d, times }) => <li><span class="when">{at(d.time)}</span><span class="what"><a href={href('decisions', permalink(d.seq))}>{sentence(d)}</a>{times > 1 && <span class="soft"> · {count(times)} times, this is the last</span>}</span></li>)}</ul>
}
