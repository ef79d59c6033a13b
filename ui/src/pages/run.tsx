import { useMemo } from 'preact/hooks'
import { currency, meta, outcomes } from '../api'
import { bytes, cash, count, percent, round, span } from '../format'
import { moment, run, seek } from '../moment'
import { Empty, Panel, PlainTable, Stat } from '../parts/basics'
import { Chart, dashed, dotted, type Line } from '../parts/chart'
import { overlay } from '../parts/overlay'
import { go, href, param } from '../route'
import type { Fact, Lane, Outcome } from '../types'

/** other is the run that lies over the one that is shown, undefined for none. */
const other = (): Outcome | undefined => (param('with') === 'none' ? undefined : outcomes.value[Number(param('with') || 1)])

/** worth is a figure as it is shown: a cost with its currency. */
const worth = (f: Fact): string => (f.label === 'cost' && Number.isFinite(Number(f.value)) ? cash(Number(f.value), currency.value) : f.value)

/** RunPage is what came of a run: its figures, its course, and another run over it. */
export function RunPage() {
  const a = outcomes.value[0], b = other()
  if (!a) return <p class="loading">Loading…</p>
  return (
    <>
      {(a.description || outcomes.value.length > 1) && <Panel title={b ? <>{a.name} <span class="soft">and</span> {b.name}</> : a.name}>
        {a.description && <p class="prose">{a.description}</p>}
        {b?.description && b.description !== a.description && <p class="prose soft">{b.name}: {b.description}</p>}
        {outcomes.value.length > 1 && <p class="controls"><label>Lay over it <select value={param('with') || '1'} onChange={e => go({ with: e.currentTarget.value === '1' ? undefined : e.currentTarget.value }, true)}>
          <option value="none">nothing</option>{outcomes.value.slice(1).map((o, i) => <option value={String(i + 1)}>{o.name}</option>)}</select></label>
        </p>}
        {b && <p class="soft">Solid lines are {a.name}, dashed ones {b.name}.</p>}
      </Panel>}
      {a.facts.length > 0 && <div class="stats">{a.facts.map(f => {
        const g = b?.facts.find(x => x.label === f.label)
        return <Stat label={f.label} value={worth(f)} tone={f.bad ? 'bad' : ''} note={<>{f.note}{g && <span class="other">{b!.name}: {g.value === f.value ? 'the same' : worth(g)}</span>}</>} />
      })}</div>}
      <Charts a={a} b={b} />
      <Panel title="Decisions over time"><Lanes a={a} b={b} /></Panel>
      <Panel title="All figures"><Figures a={a} b={b} /></Panel>
    </>
  )
}

/** drawings are the charts of a run with the lines of each: those that it hasn't got are left out. */
const drawings: { title: string; lines: [name: string, label: string, colour: string][]; grows?: boolean; stacked?: boolean; format: (n: number) => string }[] = [
  { title: 'Nodes', lines: [['nodesDraining', 'draining', 'bad-fill'], ['nodesLaunching', 'launching', 'wait-fill'], ['nodesStarting', 'starting', 'warn-fill'], ['nodesNotReady', 'not ready', 'bad-fill'], ['nodesReady', 'ready', 'good-fill']], stacked: true, format: count },
  { title: 'Pods', lines: [['podsPending', 'pending', 'wait-fill'], ['podsBound', 'bound', 'warn-fill'], ['podsRunning', 'running', 'good-fill'], ['podsPlaced', 'placed', 'good-fill']], stacked: true, format: count },
  { title: 'Requested share of ready nodes', lines: [['cpu', 'cpu', 'cpu'], ['memory', 'memory', 'memory'], ['gpu', 'gpu', 'gpu']], format: percent },
  { title: 'Cost so far', lines: [['cost', 'cost', 'accent']], grows: true, format: n => cash(n, currency.value) },
  { title: 'Cost an hour', lines: [['price', 'all nodes', 'accent'], ['priceRemovable', 'could go', 'wait-fill']], format: n => cash(n, currency.value) },
  { title: 'Disk writes of boots and image pulls', lines: [['diskWrites', 'a second', 'bad-fill']], format: n => bytes(n) },
]

/** dashes are those of lines that share a chart; where another run lies over it, its lines are the dashed ones. */
const dashes: Record<string, number[]> = { memory: dashed, gpu: dotted, priceRemovable: dashed }

/** weights tell the lines of a chart apart where dashes tell two runs apart. */
const weights = [1.6, 3.2, 0.9, 4.4, 2.4]

function Charts({ a, b }: { a: Outcome; b: Outcome | undefined }) {
  const drawn = useMemo(() => drawings.map(d => {
    const pick = (o: Outcome, over?: number[]): Line[] => d.lines.flatMap(([name, label, colour], i) => {
      const l = o.lines.find(x => x.name === name)
      return l && l.values.some(v => v) ? [{ label: b ? `${label}, ${o.name}` : label, colour, values: l.values, weight: b ? weights[i] : undefined, dash: b ? over : d.stacked ? undefined : dashes[name], hatched: name === 'nodesLaunching' || name === 'podsPending', grows: d.grows }] : []
    })
    return { ...d, ...overlay({ times: a.times, lines: pick(a) }, b && { times: b.times, lines: pick(b, dashed) }) }
  }).filter(d => d.lines.length > 0), [a, b, currency.value])
  if (a.times.length < 2 || drawn.length === 0) return <Panel><Empty title="Nothing was measured">The run was too short for charts.</Empty></Panel>
  const from = run.value?.from ?? 0
  const at = meta.value?.capabilities.seek ? (moment.value - from) / 1000 : undefined
  return (
    <Panel title="Over time"><div class="cols charts wide-charts">{drawn.map(d => (
      <div><h3>{d.title}</h3><Chart label={d.title} times={d.times} lines={d.lines} stacked={d.stacked && !b} format={d.format} sync="run" height={200} elapsed marker={at} seek={at === undefined ? undefined : s => seek(from + s * 1000)} /></div>
    ))}</div></Panel>
  )
}

/** Lanes has a row for each kind of decision: how many, and when. */
function Lanes({ a, b }: { a: Outcome; b: Outcome | undefined }) {
  if (a.lanes.length === 0) return <Empty title="There was no decision" />
  const long = (o: Outcome) => (Date.parse(o.until) - Date.parse(o.from)) / 1000
  const whole = Math.max(long(a), b ? long(b) : 0, 1e-9)
  const kinds = [...new Set([...a.lanes, ...(b?.lanes ?? [])].map(l => l.kind))].sort()
  const find = (o: Outcome | undefined, kind: string) => o?.lanes.find(l => l.kind === kind)
  const name = (kind: string) => <a href={href('decisions', { kind })}>{kind}</a>
  const draw = (kind: string) => <><Marks of={find(a, kind)} whole={whole} tone="accent" />{b && <Marks of={find(b, kind)} whole={whole} tone="gpu" />}</>
  const scale = <span class="ticks">{[0, 1, 2, 3, 4].map(i => <span>{span((whole * i) / 4)}</span>)}</span>
  const when = (l: Lane | undefined) => (l && l.at.length > 0 ? `${span(l.at[0]!)} – ${span(l.at.at(-1)! + l.step)}` : '–')
  const runs = b ? [a, b] : [a]
  return <>
    <PlainTable class="lanes" caption="Decisions over time" nums={b ? [1, 2] : [1]} head={['kind', ...(b ? [a.name, b.name] : ['decisions']), scale]}
      rows={kinds.map(kind => [name(kind), ...runs.map(o => count(find(o, kind)?.count ?? 0)), draw(kind)])} />
    <p class="legend">{b && <><span><i style={{ background: 'var(--accent)' }} />{a.name}, above</span><span><i style={{ background: 'var(--gpu)' }} />{b.name}, below</span></>}<span>the stronger a mark, the more decisions at its time</span></p>
    <details class="twin"><summary>As a table</summary><PlainTable caption="When decisions were made" head={['kind', ...runs.flatMap(o => [b ? `decisions, ${o.name}` : 'decisions', b ? `first and last, ${o.name}` : 'first and last'])]} nums={b ? [1, 3] : [1]}
      rows={kinds.map(kind => [kind, ...runs.flatMap(o => [count(find(o, kind)?.count ?? 0), when(find(o, kind))])])} /></details>
  </>
}

function Marks({ of: lane, whole, tone }: { of: Lane | undefined; whole: number; tone: string }) {
  const most = Math.max(1, ...(lane?.counts ?? []))
  return (
    <svg class="lane" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
      {lane?.at.map((t, i) => <rect x={(t / whole) * 1000} width={Math.max(2, (lane.step / whole) * 1000)} height="12" fill={`var(--${tone})`} opacity={0.35 + 0.65 * (lane.counts[i]! / most)} />)}
      {meta.value?.capabilities.seek && run.value && <rect x={((moment.value - run.value.from) / 1000 / whole) * 1000 - 1} width="2" height="12" fill="var(--text)" />}
    </svg>
  )
}

/** Figures are all figures of the summaries, with how they differ. */
function Figures({ a, b }: { a: Outcome; b: Outcome | undefined }) {
  if (!b) return <PlainTable caption="All figures" head={['', a.name]} rows={[...a.rows.map(r => [r.label, r.value]), ['seed', round(a.seed ?? 0)]]} />
  const labels = [...new Set([...a.rows, ...b.rows].map(r => r.label))]
  const value = (o: Outcome, label: string) => o.rows.find(r => r.label === label)?.value ?? '–'
  return <PlainTable caption="All figures" head={['', a.name, b.name, '']}
    rows={labels.map(l => [l, value(a, l), value(b, l), value(a, l) === value(b, l) ? '' : <><span aria-hidden="true">≠</span><span class="hidden">differs</span></>])} />
}
