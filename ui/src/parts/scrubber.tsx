import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { outcomes, waiting } from '../api'
import { clock, span } from '../format'
import { moment, run, seek } from '../moment'
import { utc } from '../settings'

// The control for the time of a run: a slider over a drawing of the pods that wait, with keys for the
// whole page.

const playing = signal(false)
/** speeds are in how many seconds the whole run is played. */
const speeds: [number, string][] = [[15, '15 s'], [60, '1 min'], [240, '4 min']]
const speed = signal(60)
const beat = 250

/** neighbour returns the time of the next change after a moment, or with a negative step of the one before it:
 * steps of them, of times that rise. Pure. */
export function neighbour(times: number[], at: number, step: number): number {
  const after = times.findIndex(t => t > at)
  const next = after < 0 ? times.length : after
  const before = next > 0 && times[next - 1] === at ? next - 2 : next - 1
  const i = step > 0 ? next + step - 1 : before + step + 1
  return times[Math.min(times.length - 1, Math.max(0, i))] ?? at
}

function step(by: number) {
  const r = run.value
  if (!r) return
  const at = (moment.value - r.from) / 1000
  const to = neighbour(outcomes.value[0]?.times ?? [], at, by)
  seek(by > 0 && to <= at ? r.until : r.from + to * 1000)
}

function toggle() {
  const r = run.value
  if (r && !playing.value && moment.value >= r.until) seek(r.from)
  playing.value = !playing.value
}

/** Scrubber is the control. It isn't there when there is no run, or only the end of one. */
export function Scrubber() {
  const r = run.value!
  useEffect(() => {
    if (!playing.value) return
    const timer = setInterval(() => {
      if (waiting.peek() > 0) return // what was asked for comes first
      const next = moment.peek() + ((r.until - r.from) / speed.peek() / 1000) * beat
      seek(next)
      if (next >= r.until) playing.value = false
    }, beat)
    return () => clearInterval(timer)
  }, [playing.value])
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if (/INPUT|SELECT|TEXTAREA/.test((e.target as HTMLElement).tagName) && (e.target as HTMLInputElement).type !== 'range') return
      if (e.metaKey || e.ctrlKey || e.altKey) return
      const act = { '.': () => step(1), ',': () => step(-1), '>': () => step(10), '<': () => step(-10), p: toggle }[e.key]
      if (!act) return
      e.preventDefault()
      act()
    }
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [])
  const notch = Math.max(1, Math.round((r.until - r.from) / 1000))
  const slide = (to: number) => {
    playing.value = false
    seek(to + notch > r.until - r.from ? r.until : r.from + to) // the last notch may be before the end
  }
  const at = clock(moment.value, utc.value === 'true', moment.value), passed = span((moment.value - r.from) / 1000), all = span((r.until - r.from) / 1000)
  return (
    <div class="scrubber" role="group" aria-label="Time of the run">
      <div class="buttons">
        <button class="tool" onClick={() => seek(r.from)} aria-label="To the beginning" title="To the beginning">|◂</button>
        <button class="tool" onClick={() => step(-1)} aria-label="To the change before" title="To the change before ( , )">◂</button>
        <button class="tool play" onClick={toggle} aria-pressed={playing.value} title="p">{playing.value ? 'Stop' : 'Play'}</button>
        <button class="tool" onClick={() => step(1)} aria-label="To the next change" title="To the next change ( . )">▸</button>
        <button class="tool" onClick={() => seek(r.until)} aria-label="To the end" title="To the end">▸|</button>
      </div>
      <div class="track">
        <Spark />
        <input type="range" min={0} max={r.until - r.from} step={notch} value={moment.value - r.from}
          aria-label="Time of the run" aria-valuetext={`${passed} of ${all}, at ${at}`} onInput={e => slide(Number(e.currentTarget.value))} />
      </div>
      <span class="at"><strong>{at}</strong> <span class="soft">{passed} of {all}</span></span>
      <label class="soft"><span>whole run in </span><select aria-label="Play the whole run in" value={speed.value} onChange={e => (speed.value = Number(e.currentTarget.value))}>{speeds.map(([s, text]) => <option value={s}>{text}</option>)}</select></label>
    </div>
  )
}

/** Spark draws the pods that wait over the run, as steps. The Run page has them as a chart and as a table. */
function Spark() {
  const o = outcomes.value[0]
  const line = o?.lines.find(l => l.name === 'podsPending')
  if (!o || !line || o.times.length === 0) return null
  const whole = Math.max(1e-9, (Date.parse(o.until) - Date.parse(o.from)) / 1000), most = Math.max(1, ...line.values.map(v => v ?? 0))
  let d = 'M0 100', last = 100
  o.times.forEach((t, i) => {
    const x = Math.min(1000, (t / whole) * 1000).toFixed(1), y = 100 - ((line.values[i] ?? 0) / most) * 96
    if (y === last) return
    d += `H${x}V${y.toFixed(1)}`
    last = y
  })
  return <svg class="spark" viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true"><path d={d + 'H1000V100Z'} /></svg>
}
