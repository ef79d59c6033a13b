import { useEffect, useMemo, useRef } from 'preact/hooks'
import { clockNow, currency, decisions, fill, inReport, meta, permalink, useAnswer } from '../api'
import { clock, count, money, plural } from '../format'
import { about, decisionTone, sentence } from '../names'
import { Clock, Empty, Mark, Pairs, Panel, PlainTable } from '../parts/basics'
import { Drawer } from '../parts/drawer'
import { Table, type Column } from '../parts/table'
import { go, href, param } from '../route'
import { narrow, utc } from '../settings'
import { leftOut } from '../tail'
import type { Decision, DecisionList } from '../types'
import { Options } from './pod'

const seq: Column<Decision> = { key: 'seq', label: '#', num: true, show: d => d.seq, by: d => d.seq }
const columns: Column<Decision>[] = [
  seq,
  { key: 'time', label: 'time', show: d => <Clock of={d.time} /> },
  { key: 'kind', label: 'kind', show: d => <><Mark tone={decisionTone(d.kind)} /> {d.kind}</>, by: d => d.kind },
  { key: 'about', label: 'about', show: about, by: about, width: 'minmax(200px, 1fr)' },
  { key: 'text', label: 'decision', show: sentence, width: 'minmax(300px, 3fr)' },
]
/** onPhone are the columns where there is no room for more: what was decided is next to its time. */
const onPhone: Column<Decision>[] = [
  { key: 'time', label: 'time', show: d => <><Mark tone={decisionTone(d.kind)} /> <Clock of={d.time} /></> },
  { key: 'text', label: 'decision', show: sentence, width: 'minmax(min(320px, 62vw), 1fr)', two: true },
  { key: 'kind', label: 'kind', show: d => d.kind, by: d => d.kind }, seq,
]

/** DecisionsPage is the ledger of decisions: live, or what matches a question. */
export function DecisionsPage() {
  const kind = param('kind'), what = param('of') || 'pod', asked = param('about'), q = param('q').toLowerCase()
  const { data, error } = useAnswer<DecisionList>(kind || asked ? 'decisions' : undefined, { kind, [what]: asked, limit: 1000 }, { every: 3000 })
  const all = kind || asked ? data?.items ?? [] : decisions.value
  useEffect(() => void fill(), [decisions.value])
  const rows = useMemo(() => (q ? all.filter(d => `${d.kind} ${about(d)} ${sentence(d)} ${d.text ?? ''}`.toLowerCase().includes(q)) : all), [all, q])
  const kinds = useMemo(() => [...new Set([...decisions.value.map(d => d.kind), kind].filter(Boolean))].sort(), [decisions.value, kind])
  const download = () => {
    const url = URL.createObjectURL(new Blob(rows.map(d => JSON.stringify(d) + '\n'), { type: 'application/x-ndjson' }))
    Object.assign(document.createElement('a'), { href: url, download: 'decisions.jsonl' }).click()
    setTimeout(() => URL.revokeObjectURL(url), 1000)
  }
  return (
    <Panel bare>
      <div class="body controls">
        <label>Kind <select value={kind} onChange={e => go({ kind: e.currentTarget.value }, true)}><option value="">all</option>{kinds.map(k => <option value={k}>{k}</option>)}</select></label>
        <label>About <select value={what} onChange={e => go({ of: e.currentTarget.value }, true)}><option value="pod">pod</option><option value="node">node</option><option value="group">node group</option></select></label>
        <label><span class="hidden">Name</span><input type="search" placeholder={what === 'pod' ? 'namespace/name' : 'name'} value={asked} onChange={e => go({ about: e.currentTarget.value }, true)} /></label>
        <input type="search" placeholder="Filter these" aria-label="Filter decisions" value={param('q')} onInput={e => go({ q: e.currentTarget.value }, true)} />
        <button class="tool" onClick={download}>Save as JSON lines</button>
        <span class="soft">{plural(rows.length, 'decision')}{data?.more ? ', and older ones' : !data && (all[0]?.seq ?? 1) > 1 ? `, the newest of ${count(all.at(-1)!.seq)}` : ''}</span>
        {!data && leftOut(all) > 0 && <span class="warn">{count(leftOut(all))} between them are left out.</span>}
        {inReport && (decisions.value[0]?.seq ?? 1) > 1 && <span class="warn">This report has the last {count(decisions.value.length)}.</span>}
        {error && <span class="bad">{error}</span>}
      </div>
      {all.length === 0 ? <Empty title="No decision">{kind || asked ? 'None of those that are kept matches.' : 'Decisions appear here as they are made.'}</Empty>
        : <Table label="Decisions" columns={narrow.value ? onPhone : columns} rows={rows} id={d => String(d.seq)} first="-seq" selected={param('seq')} open={d => go(permalink(d.seq))} />}
    </Panel>
  )
}

/** DecisionDrawer is one decision, whole. Until its answer is there it shows what the list has of it, and what it has shown
 * stays when another leader doesn't know the decision. */
export function DecisionDrawer() {
  const seq = param('seq'), epoch = param('epoch')
  const { data, error } = useAnswer<Decision>(seq ? `decisions/${seq}` : undefined, {}, { every: 10000 })
  const shown = useRef<Decision>(undefined)
  if (!seq) return null
  const other = epoch !== '' && [data?.epoch, meta.value?.epoch].some(e => e !== undefined && e !== epoch) // its number means another decision
  if (!other) shown.current = data ?? shown.current ?? decisions.value.find(d => String(d.seq) === seq)
  return (
    <Drawer title={`Decision ${seq}`} close={() => go({ seq: undefined, epoch: undefined })}>
      {other ? <p class="remark">This decision is of an earlier leader. Each counts anew, and the one that leads now has no decisions but its own.</p> : error && !data && <p class="bad">{error}</p>}
      {shown.current ? <Detail of={shown.current} /> : !error && !other && <p class="loading">Loading…</p>}
    </Drawer>
  )
}

function Detail({ of: d }: { of: Decision }) {
  return (
    <>
      <section><p><Mark tone={decisionTone(d.kind)} /> <strong>{sentence(d)}</strong></p>
        <Pairs of={[
          ['time', clock(d.time, utc.value === 'true', clockNow.value)], ['pod', d.pod && <a href={href('pending', { pod: d.pod })}>{d.pod}</a>],
          ['pod group', d.podGroup && <a href={href('podgroups', { pg: d.podGroup })}>{d.podGroup}</a>], ['members', d.members],
          ['node', d.node && <a href={href('nodes', { node: d.node })}>{d.node}</a>], ['group', d.group && <a href={href('groups', { g: d.group })}>{d.group}</a>],
          ['nodes', d.nodes], ['reason', d.reason], ['profile', d.profile], ['victims', d.victims?.join(', ')], ['headroom', d.headroom],
          ['runner-up', d.runnerUp && <>{d.runnerUp.node} with {d.runnerUp.score}, against {d.score}</>],
        ]} /></section>
      {d.scores && d.scores.length > 0 && <section><h3>Score</h3><PlainTable caption="Score" head={['plugin', 'score']} nums={[1]} rows={[...d.scores.map(s => [s.plugin, s.score]), ['total', <strong>{d.score}</strong>]]} /></section>}
      {d.rejections && d.rejections.length > 0 && <section><h3>Rejections</h3><PlainTable caption="Rejections" head={['nodes', 'rule', 'reason']} nums={[0]} rows={d.rejections.map(r => [count(r.nodes), r.plugin, r.message])} /></section>}
      {d.choice && <section><h3>Chosen from</h3><Options of={d.choice} />{d.choice.price ? <p class="soft">All that was chosen: {plural(d.choice.nodes ?? 0, 'node')} for {money(d.choice.price, currency.value)}</p> : null}</section>}
    </>
  )
}
