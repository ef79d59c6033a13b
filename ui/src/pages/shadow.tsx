import { clockNow, currency, useAnswer } from '../api'
import { clock, count, money, plural, round, seconds, span } from '../format'
import { Empty, Meter, Panel, PlainTable, Stat } from '../parts/basics'
import { utc } from '../settings'
import type { Shadow, ShadowDifference, ShadowNodeDifference, ShadowNodes, ShadowTimes } from '../types'

// The shadow's report, with the same content as its text (sim/report/shadow.go).

const at = (t?: string) => clock(t, utc.value === 'true', clockNow.value)
const wait = (d: string | undefined) => {
  const s = seconds(d)
  return s < 0.001 ? '<1ms' : s < 1 ? `${Math.round(s * 1000)}ms` : span(s)
}

/** took is a quantile of the times to place; of no pods there is none. */
const took = (t: ShadowTimes, q: 'p50' | 'p99') => (t.pods ? wait(t[q]) : '–')

const verdicts: Record<string, [string, string]> = {
  same: ['the node that Berth chooses, or had chosen', 'good-fill'], equal: ['another, equally good node', 'good-fill'], better: ['a better node', 'cpu'],
  worse: ['a worse node', 'warn-fill'], notAllowed: ['a node that a plugin rejects', 'bad-fill'], onlyBerth: ['placed only by Berth', 'wait-fill'],
}

/** ShadowPage compares another scheduler's placements with Berth's. */
export function ShadowPage() {
  const { data: s, error } = useAnswer<Shadow>('shadow', {}, { every: 5000 })
  if (error && !s) return <p class="bad">{error}</p>
  if (!s) return <p class="loading">Loading…</p>
  const n = (verdict: string) => s.verdicts.find(v => v.verdict === verdict)?.count ?? 0
  return (
    <>
      <p class="soft">{s.since && s.compared + s.waiting > 0 ? `Pods from ${at(s.since)} to ${at(s.until)}, as of ${at(s.at)}.` : `As of ${at(s.at)}; nothing is compared yet.`}</p>
      <Notes of={s} n={n} />
      <div class="stats">
        <Stat label="Agreement" value={s.compared ? percent1(s.agreement) : '–'} note={`of ${plural(s.compared, 'pod')}: the same node, or one as good`} tone={s.compared && s.agreement >= 0.99 ? 'good' : ''} />
        <Stat label="Allowed by Berth’s rules" value={s.compared ? percent1(s.allowed) : '–'} note={`${count(n('notAllowed'))} not allowed`} tone={n('notAllowed') > 0 ? 'bad' : ''} />
        <Stat label="Time to place, p50" value={took(s.other, 'p50')} note={`Berth ${took(s.berth, 'p50')}`} />
        <Stat label="Time to place, p99" value={took(s.other, 'p99')} note={`Berth ${took(s.berth, 'p99')}`} />
        <Stat label="Placed only by Berth" value={count(n('onlyBerth'))} note={`${count(s.waiting)} waiting`} />
        {s.nodes?.since && s.nodes.cluster.cost > 0 && <Stat label="Estimated savings" value={percent1(1 - s.nodes.berth.cost / s.nodes.cluster.cost)} note={`${sum(s.nodes.cluster.cost)} to ${sum(s.nodes.berth.cost)}`} />}
      </div>
      <div class="cols">
        <Panel title="Placements by the other scheduler"><p class="soft">Judged by the scores of the pod’s profile at the time when the binding was observed.</p>
          <PlainTable caption="Placements" head={['node', 'pods', 'share']} nums={[1]} rows={Object.keys(verdicts).flatMap(v => [
            [verdicts[v]![0], count(n(v)), v === 'onlyBerth' ? '' : <Meter share={s.compared ? n(v) / s.compared : undefined} tone={verdicts[v]![1]} />],
            ...(v === 'worse' ? [[<span class="inset">of these, with pods or nodes added or removed before the binding was observed</span>, count(s.overtaken), '']] : []),
          ])} /></Panel>
        <Panel title="Summary"><PlainTable caption="Summary" head={['', '']} nums={[1]} rows={s.compared === 0 ? [['pods placed by both', '0']] : [
          ['agreement: same or equally good node', percent1(s.agreement)], ['placements allowed by Berth’s rules', percent1(s.allowed)],
          [<span class="inset">found to be allowed after others were observed</span>, count(s.judgedAgain)],
          ['mean score points below Berth’s choice, per pod', (s.short / s.compared).toFixed(1)]]} /></Panel>
        <Panel title="Time to place"><p class="soft">From when the pod was first seen; for Berth until its decision, which is not bound.</p>
          <PlainTable caption="Time to place" head={['by', 'pods', 'p50', 'p90', 'p99', 'max']} nums={[1, 2, 3, 4, 5]} rows={[times('other scheduler (bound)', s.other), times('Berth (decided)', s.berth)]} /></Panel>
        <Panel title="Which was faster"><p class="soft">And how Berth’s own decisions turned out, each made as if its earlier ones had been carried out.</p>
          <PlainTable caption="Which was faster" head={['when the binding was observed', 'pods']} nums={[1]} rows={[
            ['Berth had decided', count(s.earlier.decided)], [<span class="inset">on the same node</span>, count(s.earlier.same)], [<span class="inset">on a node as good as the other’s by then</span>, count(s.earlier.equal)],
            [<span class="inset">on a node worse than the other’s by then</span>, count(s.earlier.better)], [<span class="inset">on a node better than the other’s by then</span>, count(s.earlier.worse)],
            [<span class="inset">on a node without room by then: the other scheduler had used it</span>, count(s.earlier.noMore)],
            ['Berth had found no node: in its model all were taken', count(s.earlier.noNode)], ['Berth had not tried yet: the other scheduler was faster', count(s.earlier.notYet)]]} /></Panel>
        {s.nodes?.since && <NodePanels of={s.nodes} />}
      </div>
      <Panel title="Largest differences">{s.differences.length === 0 ? <Empty title="No difference yet" /> : <ol class="items">{s.differences.map(d => <Difference when={d.time} what={what(d)} why={why(d)} />)}</ol>}
        {(s.hidden ?? 0) > 0 && <p class="soft">and {count(s.hidden)} in namespaces that you may not read</p>}</Panel>
      {(s.nodes?.differences.length ?? 0) > 0 && <Panel title="Largest node differences by price"><ol class="items">{s.nodes!.differences.map(d => <Difference when={d.time} what={nodeWhat(d)} why={nodeWhy(d)} />)}</ol></Panel>}
    </>
  )
}

const percent1 = (share: number) => `${(share * 100).toFixed(1)} %`
const sum = (n: number) => money(n, currency.value).replace('/h', '')
const times = (who: string, t: ShadowTimes) => (t.pods ? [who, count(t.pods), wait(t.p50), wait(t.p90), wait(t.p99), wait(t.max)] : [who, '0', '–', '–', '–', '–'])

/** Notes are what a reader has to know before the figures. */
function Notes({ of: s, n }: { of: Shadow; n: (verdict: string) => number }) {
  const only = n('onlyBerth'), notes: string[] = []
  if (s.compared === 0 && only + s.waiting > 0) notes.push(`No other scheduler has placed any of the ${plural(only + s.waiting, 'pod')} for which Berth has a node: is one running, and do its profiles have the same names as Berth’s?`)
  if (n('notAllowed') > 0) notes.push('A node that is not allowed may have been allowed when the other scheduler decided: a label, a taint or a pod that this depends on may have changed before the binding was observed.')
  if (s.overtaken > 0) notes.push(`${count(s.overtaken)} of the worse nodes may have been good choices when the other scheduler decided: pods or nodes were added or removed before the binding was observed.`)
  if (s.doubted > 0) notes.push(`${plural(s.doubted, 'placement')} being judged again: not allowed when observed, possibly before others that it depends on.`)
  if (s.nodes && !s.nodes.since) notes.push('The provider has not listed its node groups yet, so no nodes are compared.')
  if (s.nodes?.unpriced?.length) notes.push(`The provider has no price for ${s.nodes.unpriced.join(', ')}: nodes of these groups count as free here.`)
  return <>{notes.map(text => <p class="remark">{text}</p>)}</>
}

function NodePanels({ of: x }: { of: ShadowNodes }) {
  const n = (verdict: string) => count(x.verdicts.find(v => v.verdict === verdict)?.count ?? 0)
  const undecided = 'undecided: Berth would have, and the other autoscaler still may'
  return (
    <>
      <Panel title={`Nodes added since ${at(x.since)}`}><PlainTable caption="Nodes added" head={['by', 'nodes']} nums={[1]} rows={[
        ['both', n('boughtByBoth')], ['only Berth (would have)', n('boughtOnlyByBerth')], ['only the other autoscaler', n('boughtOnlyByOther')], [undecided, count(x.buying)],
        ['for both, mean time by which Berth was earlier', wait(x.boughtAhead)]]} /></Panel>
      <Panel title={`Nodes removed since ${at(x.since)}`}><PlainTable caption="Nodes removed" head={['by', 'nodes']} nums={[1]} rows={[
        ['both', n('removedByBoth')], ['only Berth (would have): the other autoscaler keeps the node, or kept it until it was needed again', n('removedOnlyByBerth')],
        ['only the other autoscaler', n('removedOnlyByOther')], [<span class="inset">also found unneeded by Berth, but not for long enough</span>, count(x.early)], [undecided, count(x.removing)],
        ['needed again, of those that Berth would have removed', count(x.again)], ['for both, mean time by which Berth was earlier', wait(x.removedAhead)]]} /></Panel>
      <Panel title={`Node hours of all node groups since ${at(x.since)}`}><PlainTable caption="Node hours" head={['of', 'node hours', 'cost']} nums={[1, 2]}
        rows={[['actual cluster', round(x.cluster.hours), sum(x.cluster.cost)], ['Berth (estimated)', round(x.berth.hours), sum(x.berth.cost)]]} /></Panel>
    </>
  )
}

const Difference = ({ when, what, why }: { when: string; what: string; why: string[] }) => (
  <li><span class="when">{at(when)}</span><span class="what">{what}{why.map(line => <div class="soft">{line}</div>)}</span></li>
)

function what(d: ShadowDifference): string {
  const choice = d.berthNode ? `Berth chooses ${d.berthNode} (${d.berthScore ?? 0})` : 'Berth finds no node'
  if (d.verdict === 'notAllowed') return `${d.pod} was placed on ${d.node}, which is not allowed; ${choice}`
  if (d.verdict === 'onlyBerth') return `${d.pod} was placed only by Berth, on ${d.berthNode}`
  return `${d.pod} was placed on ${d.node} (${d.score ?? 0}); ${choice}`
}

function why(d: ShadowDifference): string[] {
  const out: string[] = []
  if (d.verdict === 'notAllowed' || d.verdict === 'onlyBerth') out.push([d.plugin, d.reason].filter(Boolean).join(': '))
  else for (const s of d.scores ?? []) {
    const b = d.berthScores?.find(x => x.plugin === s.plugin)?.score ?? 0
    if (b !== s.score) out.push(`${s.plugin} gives ${d.node} ${s.score} and ${d.berthNode} ${b}`)
  }
  const e = d.earlier
  if (e && d.verdict !== 'onlyBerth') {
    if (!e.node) out.push(`Berth had found no node after ${wait(e.took)}: ${e.why ?? ''}`)
    else out.push(`Berth had chosen ${e.node} after ${wait(e.took)}${e.fits ? '; the other scheduler’s binding was observed' : ', which had no room when the other scheduler’s binding was observed'} after ${wait(d.took)}`)
  }
  return out.filter(Boolean)
}

function nodeWhat(d: ShadowNodeDifference): string {
  const text = { boughtOnlyByBerth: `Berth would have added ${d.nodes} of ${d.group}`, boughtOnlyByOther: `the other autoscaler added ${d.nodes} of ${d.group}`, removedOnlyByBerth: `Berth would have removed ${d.node} of ${d.group}` }[d.verdict] ?? `the other autoscaler removed ${d.node} of ${d.group}`
  return text + (d.price ? `, ${money(d.price, currency.value)}` : '')
}

const nodeWhy = (d: ShadowNodeDifference): string[] => [
  ...(d.wished ? [`at ${at(d.wished)}${d.pods?.length ? `, for ${d.pods.join(', ')} and possibly others` : ''}`] : []), ...(d.reason ? [d.reason] : []),
]
