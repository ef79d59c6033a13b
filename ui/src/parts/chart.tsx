import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { clock, span } from '../format'
import { now, printing, systemDark, theme, utc } from '../settings'
import { PlainTable } from './basics'

export interface Line {
  label: string
  colour: string // a custom property of the theme, such as "good-fill"
  values: (number | null)[]
  dash?: number[]
  /** What it counts grows evenly between two values; others hold until the next. */
  grows?: boolean
  /** Its area in a stack is hatched, and not told from the others by its colour alone. */
  hatched?: boolean
  /** How thick it is, in pixels, where the dashes tell something else. */
  weight?: number
}

/** dashed and dotted tell lines of one chart apart without colours. */
export const dashed = [7, 4], dotted = [2, 3]

interface Props {
  label: string
  times: number[] // Unix seconds
  lines: Line[]
  stacked?: boolean
  height?: number
  format: (n: number) => string
  /** Charts with one key have one cursor. */
  sync?: string
  /** Times are seconds since a beginning, not Unix seconds. */
  elapsed?: boolean
  /** The time that is looked at, and what a click on another does. */
  marker?: number
  seek?: (time: number) => void
}

/** Chart draws numbers over time: as steps, since they hold until the next one. A table has the same. */
export function Chart({ label, times, lines, stacked, height = 180, format, sync, elapsed, marker, seek }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const tabled = useSignal(false)
  const scale = useSignal(scaleOfText())
  const latest = (l: Line) => valueAt(times, l.values, marker)
  const mark = useRef(marker)
  mark.current = marker
  const data = () => [times, ...(stacked ? stack(lines) : lines.map(l => l.values))] as uPlot.AlignedData
  useLayoutEffect(() => { // before a browser prints what it has
    const css = getComputedStyle(document.documentElement)
    const colour = (name: string) => css.getPropertyValue('--' + name).trim()
    const stepped = uPlot.paths.stepped!({ align: 1 })
    const axis = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 }, font: `${12 * scale.value}px system-ui` }
    const u = new uPlot({
      width: box.current!.clientWidth, height: height * scale.value, padding: [8, 8, 0, 0],
      cursor: { sync: sync ? { key: sync } : undefined, points: { size: 5 }, y: false },
      legend: { show: false },
      tzDate: utc.value === 'true' ? t => uPlot.tzDate(new Date(t * 1000), 'UTC') : undefined,
      scales: { x: { time: !elapsed }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.08, 1e-9)] } },
      hooks: { draw: [u => drawMarker(u, mark.current, colour('text'))] },
      axes: [elapsed ? { ...axis, size: 50 * scale.value, values: (_u, v) => v.map(span), incrs: lengths } : { ...axis, size: 50 * scale.value, values: hours }, { ...axis, size: widest, values: (_u, v) => v.map(format) }],
      series: [{}, ...lines.map(l => ({
        label: l.label, stroke: colour(l.colour), width: l.weight ?? 1.6, dash: l.dash, points: { show: false }, paths: l.grows ? uPlot.paths.linear!() : stepped,
        fill: stacked ? (l.hatched ? (u: uPlot) => hatch(u.ctx, colour(l.colour)) : colour(l.colour)) : undefined,
      }))],
    }, data(), box.current!)
    plot.current = u
    const click = () => seek && u.cursor.left !== undefined && u.cursor.left >= 0 && u.select.width === 0 && seek(u.posToVal(u.cursor.left, 'x'))
    u.over.addEventListener('click', click)
    const watch = new ResizeObserver(() => {
      scale.value = scaleOfText()
      u.setSize({ width: box.current!.clientWidth, height: height * scale.value })
    })
    watch.observe(box.current!)
    return () => {
      watch.disconnect()
      u.destroy()
    }
  }, [lines.length, theme.value, systemDark.value, printing.value, utc.value, height, scale.value])
  useEffect(() => plot.current?.setData(data()), [times, lines])
  useEffect(() => plot.current?.redraw(false), [marker])
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={`${label}: ${lines.map(l => `${l.label} ${format(latest(l))}`).join(', ')}`} />
      <figcaption class="legend">{lines.map(l => <span><i class={stacked && l.hatched ? 'hatched' : l.dash ? (l.dash === dotted ? 'dotted' : 'dashed') : ''} style={{ background: `var(--${l.colour})`, '--dash': `var(--${l.colour})`, height: l.weight && `${l.weight * 2.2}px` }} />{l.label} {format(latest(l))}</span>)}</figcaption>
      <details class="twin" onToggle={e => (tabled.value = e.currentTarget.open)}><summary>As a table</summary>
        {tabled.value && <PlainTable caption={label} head={['time', ...lines.map(l => l.label)]} nums={lines.map((_, i) => i + 1)}
          rows={thin(times.map((_, i) => i), 60).reverse().map(i => [elapsed ? span(times[i]!) : clock(times[i]! * 1000, utc.value === 'true', now.value), ...lines.map(l => format(l.values[i] ?? NaN))])} />}
      </details>
    </figure>
  )
}

/** valueAt is what a line says at a time: its last value until then, NaN for none. Pure. */
export function valueAt(times: number[], values: (number | null)[], at = Infinity): number {
  for (let i = times.length - 1; i >= 0; i--) {
    const v = values[i]
    if (times[i]! <= at && v !== null && v !== undefined) return v
  }
  return NaN
}

/** scaleOfText is how large the page's text is beside that on a laptop. */
const scaleOfText = (): number => Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 14)

/** widest is the width of an axis that its longest label needs. uPlot asks until it doesn't change, at most a few times. */
function widest(u: uPlot, values: string[] | null, at: number, cycle: number): number {
  const axis = u.axes[at]! as uPlot.Axis & { _size: number; font: [string] | string }
  if (cycle > 1) return axis._size
  u.ctx.font = typeof axis.font === 'string' ? axis.font : axis.font[0]
  return Math.ceil(Math.max(56 * scaleOfText(), 18 + Math.max(0, ...(values ?? []).map(v => u.ctx.measureText(v).width / devicePixelRatio))))
}

/** hatch is a pattern of stripes. */
function hatch(of: CanvasRenderingContext2D, colour: string): CanvasPattern {
  const tile = document.createElement('canvas'), size = Math.round(6 * devicePixelRatio)
  tile.width = tile.height = size
  const ctx = tile.getContext('2d')!
  ctx.strokeStyle = colour
  ctx.lineWidth = size / 2.6
  for (const from of [-size, 0, size]) {
    ctx.moveTo(from - 1, size + 1)
    ctx.lineTo(from + size + 1, -1)
  }
  ctx.stroke()
  return of.createPattern(tile, 'repeat')!
}

/** drawMarker draws the time that is looked at. */
function drawMarker(u: uPlot, at: number | undefined, colour: string) {
  if (at === undefined || !Number.isFinite(at)) return
  const x = Math.round(u.valToPos(at, 'x', true))
  if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return
  u.ctx.save()
  u.ctx.fillStyle = colour
  u.ctx.fillRect(x, u.bbox.top, devicePixelRatio, u.bbox.height)
  u.ctx.restore()
}

/** lengths are the distances of ticks on an axis of elapsed times, in seconds. */
const lengths = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800]

/** hours are how uPlot writes an axis of times: for each distance of ticks its form, and what is added
 * where the day or the year changes. */
const hours = [
  [3600 * 24 * 365, '{YYYY}', null, null, null, null, null, null, 1],
  [3600 * 24, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
] as unknown as uPlot.Axis.Values

/** stack adds each line to those after it, so that the first lies on top. */
export function stack(lines: Line[]): (number | null)[][] {
  const out = lines.map(l => [...l.values])
  for (let i = out.length - 2; i >= 0; i--) out[i] = out[i]!.map((v, t) => (v === null && out[i + 1]![t] === null ? null : (v ?? 0) + (out[i + 1]![t] ?? 0)))
  return out
}

/** thin leaves about so many, the last among them. */
export function thin<T>(all: T[], most: number): T[] {
  const step = Math.ceil(all.length / most)
  return step <= 1 ? [...all] : all.filter((_, i) => (all.length - 1 - i) % step === 0)
}
