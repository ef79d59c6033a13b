import { computed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { clockNow, currency, decisions, meta, overview, permalink, useAnswer } from '../api'
import { age, amount, cash, clock, count, money, percent, plural, quantity, since, span } from '../format'
import { attentionHref, decisionTone, reasonOf, sentence, stateOfMany, toneOfSeverity } from '../names'
import { Chart, dashed, dotted, type Line } from '../parts/chart'
import { Empty, Mark, Panel, Stat, Tag } from '../parts/basics'
import { run, seek } from '../moment'
import { href, param, go } from '../route'
import { Segments } from '../parts/basics'
import { utc } from '../settings'
import type { Expectation, Overview, Series } from '../types'

/** Now is the cluster at a glance. */
export function Now() {
  const o = overview.value
  if (!o) return <p class="loading">Waiting for the first answer…</p>
  return (
    <>
      <Stats of={o} />
      <div class="cols">
        <Panel title="Needs attention"><Attentions of={o} /></Panel>
        <Panel title="In progress"><Progress of={o} /></Panel>
      </div>
      <Charts />
      <div class="cols">
        <Panel title="Pending pods by reason" more={<a href="#/pending">All pending pods</a>}><PendingList of={o} /></Panel>
        <Panel title="Last decisions" more={<a href="#/decisions">All decisions</a>}><Activity /></Panel>
      </div>
    </>
  )
}

function Stats({ of: o }: { of: Overview }) {
  const n = o.nodes
  const coming = n.launching ? `, ${count(n.launching)} coming` : ''
  return (
    <div class="stats">
      <Stat label="Pending pods" href="#/pending" value={count(o.pods.pending)} tone={o.pods.pending > 0 ? 'wait' : ''}
        note={o.pods.oldest && o.pods.pending > 0 ? `the oldest for ${age(o.pods.oldest, clockNow.value)}` : `${count(o.pods.placed)} placed`} />
      <Stat label="Nodes ready" href="#/nodes" value={`${count(n.ready)}`} tone={n.notReady > 0 ? 'warn' : ''}
        note={`of ${count(n.total)}${coming}${n.leaving ? `, ${count(n.leaving)} leaving` : ''}`} />
      {o.utilization.slice(0, 4).map(u => (
        <Stat label={`${u.resource} requested`} value={quantity(u.allocatable) > 0 ? percent(u.share) : '–'} note={`${amount(u.resource, u.requested)} of ${amount(u.resource, u.allocatable)}`} />
      ))}
      {o.money && <Stat label="Nodes cost" href="#/money" value={money(o.money.price, currency.value)}
        note={o.money.removable > 0 ? `${money(o.money.removable, currency.value)} could go` : o.money.unpriced ? `${plural(o.money.unpriced, 'node')} without a price` : 'nothing could go now'} />}
    </div>
  )
}

function Attentions({ of: o }: { of: Overview }) {
  if (o.nodes.total === 0 && o.attention.length === 0) return <Empty title="There is no node">Pods wait until one joins the cluster. Berth orders nodes where it has node groups: --cloud-provider.</Empty>
  if (o.attention.length === 0) return <Empty title="Nothing needs attention">No pod is rejected, no group backs off, all nodes are ready.</Empty>
  return (
    <ul class="items">{o.attention.map(a => (
      <li><Mark tone={toneOfSeverity[a.severity] ?? 'info'} /><span class="what"><span class="hidden">{a.severity}: </span><a href={attentionHref(a)}>{a.message}</a>
        {a.until && <span class="soft"> · until {clock(a.until, utc.value === 'true', clockNow.value)}</span>}
        {a.since && !a.until && <span class="soft"> · for {age(a.since, clockNow.value)}</span>}
        {a.price ? <span class="soft"> · {money(a.price, currency.value)}</span> : null}</span></li>
    ))}</ul>
  )
}

/** expected says when a node is likely to come. */
export function expected(e: Expectation | undefined, now: number): string {
  if (!e) return ''
  if (!e.likely) return e.givenUp ? `no launch time known yet; Berth gives up waiting ${within(e.givenUp, now)}` : ''
  const late = e.late && Date.parse(e.late) < now
  return late ? `late; Berth gives up waiting ${within(e.givenUp, now)}` : `likely ${within(e.likely, now)}`
}

/** Expected is expected, written anew as time goes on. */
export function Expected({ of }: { of: Expectation | undefined }) {
  const text = useMemo(() => computed(() => expected(of, clockNow.value)), [of])
  return <>{text}</>
}

function within(time: string | undefined, now: number): string {
  const s = -since(time, now)
  if (!Number.isFinite(s)) return 'later'
  return s <= 0 ? 'any moment' : `in ${span(Math.round(s))}`
}

function Progress({ of: o }: { of: Overview }) {
  const t = clockNow.value
  const rows = [
    ...(o.buying ?? []).map(b => <li><Mark tone="wait" /><span class="what">Buying <a href={href('groups', { g: b.group })}>{plural(b.nodes, 'node')} of {b.group}</a>
      {b.pods > 0 ? ` for ${plural(b.pods, 'pod')}` : ' to reach its minimum'} <span class="soft">{expected(b.next, t)}</span></span></li>),
    ...(o.draining ?? []).map(d => <li><Mark tone="warn" /><span class="what">Removing <a href={href('nodes', { node: d.node })}>{d.node}</a>: {d.step}
      {d.pods > 0 && `, ${plural(d.pods, 'pod')} left`} {d.why && <span class="soft">{d.why}</span>}</span></li>),
    ...(o.preempting ?? []).map(p => <li><Mark tone="warn" /><span class="what"><a href={href('pending', { pod: p.pod })}>{p.pod}</a> waits for {plural(p.count, 'victim')} to leave {p.node}</span></li>),
    ...(o.backingOff ?? []).map(b => <li><Mark tone="warn" /><span class="what"><a href={href('groups', { g: b.group })}>{b.group}</a> backs off until {clock(b.until, utc.value === 'true', t)} <span class="soft">{b.reason}</span></span></li>),
    ...(o.coolingDown ?? []).map(c => <li><Mark tone="info" /><span class="what"><a href={href('groups', { g: c.group })}>{c.group}</a>: {plural(c.nodes, 'node')} could go {within(c.until, t)} <span class="soft">{c.why}</span></span></li>),
  ]
  if (rows.length === 0) return <Empty title="Nothing is under way">No node is being bought or removed, and no pod waits for victims.</Empty>
  return <ul class="items">{rows.slice(0, 14)}{rows.length > 14 && <li class="soft">and {rows.length - 14} more</li>}</ul>
}

function PendingList({ of: o }: { of: Overview }) {
  if (o.pending.length === 0) return <Empty title="No pod is pending">{o.pods.placed === 0 ? 'There is no pod.' : o.pods.placed === 1 ? 'The only pod has a node.' : `All ${count(o.pods.placed)} pods have a node.`}</Empty>
  return (
    <ul class="items">{o.pending.slice(0, 8).map(p => {
      const [text, tone] = stateOfMany(p.state, p.pods)
      return <li><span class="num"><strong>{count(p.pods)}</strong></span><span class="what"><Tag tone={tone}>{text}</Tag> {reasonOf(p.state, p.reason)}
        {p.example && <> <span class="soft">such as</span> <a href={href('pending', { pod: p.example })}>{p.example}</a></>}
        {p.since && <span class="soft"> · for {age(p.since, clockNow.value)}</span>}</span></li>
    })}</ul>
  )
}

function Activity() {
  const last = decisions.value.slice(-12).reverse()
  if (last.length === 0) return <Empty title="No decision yet">Decisions appear here as they are made.</Empty>
  return (
    <ul class="items">{last.map(d => (
      <li key={d.seq}><span class="when">{clock(d.time, utc.value === 'true', clockNow.value)}</span><Mark tone={decisionTone(d.kind)} />
        <span class="what"><a href={href('decisions', permalink(d.seq))}>{sentence(d)}</a></span></li>
    ))}</ul>
  )
}

const ranges: [string, string][] = [['1h', '1 h'], ['6h', '6 h'], ['7d', '7 d']]

/** looks are the gauges that are drawn, with what they are called and their colours. Lines of one chart differ by their
 * dashes, too. */
const looks: Record<string, [label: string, colour: string, dash?: number[]]> = {
  podsPending: ['pending', 'wait-fill'],
  podsRejected: ['that no node takes', 'bad-fill', dashed],
  nodesReady: ['ready', 'good-fill'],
  nodesNotReady: ['not ready', 'bad-fill'],
  nodesLaunching: ['launching', 'wait-fill'],
  cpu: ['cpu', 'cpu'],
  memory: ['memory', 'memory', dashed],
  gpu: ['gpu', 'gpu', dotted],
  price: ['all nodes', 'accent'],
  priceRemovable: ['could go', 'wait-fill', dashed],
}

const lengths: Record<string, number> = { '1h': 3600, '6h': 6 * 3600, '7d': 7 * 86400 }

/** from is where a range begins: to five minutes, so that one question is asked for a while. */
const from = (range: string): string => new Date(Math.floor((clockNow.value / 1000 - (lengths[range] ?? 3600)) / 300) * 300e3).toISOString().replace('.000', '')

function Charts() {
  const range = param('range') || '1h'
  const replay = meta.value?.capabilities.replay
  const { data, error } = useAnswer<Series>('series', replay ? { step: run.value && run.value.until - run.value.from > 6 * 3600e3 ? '5m' : '10s' } : { step: range === '7d' ? '5m' : '10s', from: from(range) }, { every: 10000 })
  const have = data ? (data.points - 1) * stepOf(data) : 0
  const title = <>Over time{!replay && have > 0 && have < (lengths[range] ?? 3600) * 0.95 && <span class="soft"> · the last {span(have)}, which is all there is</span>}</>
  const more = !replay && <Segments label="Range" of={ranges} value={range} set={r => go({ range: r === '1h' ? undefined : r }, true)} />
  if (!data || data.points < 2) return <Panel title={title} more={more}>{error ? <p class="bad">{error}</p> : <Empty title="No measurements yet">One is taken every 10 seconds.</Empty>}</Panel>
  return <Panel title={title} more={more}><SeriesCharts of={data} /></Panel>
}

/** SeriesCharts draws the gauges in four charts with one cursor. */
export function SeriesCharts({ of: data }: { of: Series }) {
  const { times, charts } = useMemo(() => drawn(data, currency.value), [data, currency.value])
  return (
    <div class="cols charts">{charts.map(([label, lines, stacked, format]) => (
      <div><h3>{label}</h3><Chart label={label} times={times} lines={lines} stacked={stacked} format={format} sync="over-time" height={170} marker={meta.value?.capabilities.seek ? clockNow.value / 1000 : undefined} seek={meta.value?.capabilities.seek ? s => seek(s * 1000) : undefined} /></div>
    ))}</div>
  )
}

type Drawn = [label: string, lines: Line[], stacked: boolean, format: (n: number) => string]

/** drawn are the charts of the gauges that there are. */
function drawn(data: Series, currency: string): { times: number[]; charts: Drawn[] } {
  const from = Date.parse(data.from) / 1000
  const step = stepOf(data)
  const times = Array.from({ length: data.points }, (_, i) => from + i * step)
  // The first measurement may have been taken before any node was known.
  const unknown = data.lines.filter(l => l.name.startsWith('nodes')).every(l => !l.values[0])
  const pick = (...names: string[]): Line[] => names.flatMap(n => {
    const l = data.lines.find(x => x.name === n)
    const [label, colour, dash] = looks[n] ?? [n, 'accent']
    return l && l.values.some(v => v) ? [{ label, colour, dash, hatched: n === 'nodesLaunching', values: unknown && !n.startsWith('pods') ? [null, ...l.values.slice(1)] : l.values }] : []
  })
  const charts: Drawn[] = [
    ['Pods waiting', pick('podsPending', 'podsRejected'), false, count],
    ['Nodes', pick('nodesLaunching', 'nodesNotReady', 'nodesReady'), true, count],
    ['Requested', pick('cpu', 'memory', 'gpu'), false, percent],
    ['Cost an hour', pick('price', 'priceRemovable'), false, n => cash(n, currency)],
  ]
  return { times, charts: charts.filter(([, lines]) => lines.length > 0) }
}

const stepOf = (s: Series): number => {
  const m = /^(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?$/.exec(s.step)
  return m ? Number(m[1] ?? 0) * 3600 + Number(m[2] ?? 0) * 60 + Number(m[3] ?? 0) : 10
}

