import { computed, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { clockNow, inReport, overview, today, trouble } from '../api'
import { age, clock, count, percent } from '../format'
import { go, param } from '../route'
import { utc } from '../settings'

export function Panel({ title, more, children, bare }: { title?: ComponentChildren; more?: ComponentChildren; children: ComponentChildren; bare?: boolean }) {
  return (
    <section class="panel">
      {title && <header><h2>{title}</h2>{more && <div class="more">{more}</div>}</header>}
      {bare ? children : <div class="body">{children}</div>}
    </section>
  )
}

export function Stat({ label, value, note, href, tone }: { label: string; value: ComponentChildren; note?: ComponentChildren; href?: string; tone?: string }) {
  const inside = <>
    <span class="label">{label}</span>
    <span class={'value ' + (tone ?? '')}>{value}</span>
    {note && <span class="note">{note}</span>}
  </>
  return href ? <a class="panel stat" href={href}>{inside}</a> : <div class="panel stat">{inside}</div>
}

/** Meter is a share as a bar, with its number beside it. */
export function Meter({ share, of, tone }: { share: number | undefined; of?: string; tone: string }) {
  const s = Math.min(1, Math.max(0, share ?? 0))
  return (
    <span class="meter" title={of}>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={s * 100} height="10" fill={`var(--${tone})`} /></svg>
      <span class="of">{percent(share)}</span>
    </span>
  )
}

/** Age is how long ago a time was. While time goes on it writes a new text where there is one, and draws nothing anew. */
export function Age({ of }: { of: string | undefined }) {
  const text = useMemo(() => computed(() => age(of, clockNow.value)), [of])
  return <>{text}</>
}

/** Clock is a time of day, as Age is an age. */
export function Clock({ of }: { of: string | undefined }) {
  const text = useMemo(() => computed(() => clock(of, utc.value === 'true', today.value)), [of])
  return <>{text}</>
}

/** Left says that a report has the first rows of a list alone. */
export function Left({ of }: { of: { items: unknown[]; total: number; hidden?: number } }) {
  const missing = of.total - (of.hidden ?? 0) - of.items.length
  return inReport && missing > 0 ? <span class="warn">This report has the first {count(of.items.length)}; open its file with berth ui --file for all.</span> : null
}

/** command is what a message ends with where there is a command that helps. */
const command = /: [^:]*: (kubectl .+)$/

/** WayOut is the command that the trouble names, to be copied, where there is nothing else to show. */
export function WayOut() {
  const line = command.exec(trouble.value)?.[1]
  return line ? <Panel title="What would help"><p>A cluster administrator can grant the right, with your name for NAME:</p><Command line={line} /></Panel> : null
}

/** Trouble says why nothing new comes, and how old is what is shown. */
export function Trouble() {
  const o = overview.value
  return trouble.value ? <div class={o ? 'banner warn' : 'banner bad'} role="status"><Mark tone={o ? 'warn' : 'bad'} />{o ? trouble.value : trouble.value.replace(command, '.')}{o && <span class="soft"> What is shown is {age(o.at, clockNow.value)} old.</span>}</div> : null
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><strong>{title}</strong>{children}</div>
}

/** Nothing says what nothing matches, with a way back to all. */
export function Nothing() {
  const asked = ['q', 'group', 'state', 'kind', 'about'].filter(k => param(k))
  return <p class="empty">Nothing matches{asked.length > 0 ? ` “${asked.map(k => param(k)).join('”, “')}”` : ''}. {asked.length > 0 && <button class="tool" onClick={() => go(Object.fromEntries(asked.map(k => [k, undefined])))}>Clear the filter</button>}</p>
}

const marks: Record<string, string> = { good: '✓', warn: '!', bad: '✕', wait: '…', info: 'i' }

/** Mark tells a tone by a sign, not by colour alone. */
export const Mark = ({ tone }: { tone: string }) => <span class={'mark ' + tone} aria-hidden="true">{marks[tone] ?? '·'}</span>

export const Tag = ({ tone, children, title }: { tone?: string; children: ComponentChildren; title?: string }) => <span class={'tag ' + (tone ?? '')} title={title}>{children}</span>

export function Pairs({ of }: { of: [string, ComponentChildren][] }) {
  return <dl class="pairs">{of.filter(([, v]) => v !== undefined && v !== '' && v !== null).map(([k, v]) => <><dt>{k}</dt><dd>{v}</dd></>)}</dl>
}

/** Command is a line to copy into a terminal. */
export function Command({ line }: { line: string }) {
  const copied = useSignal(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line)
      copied.value = true
      setTimeout(() => (copied.value = false), 1500)
    } catch {
      getSelection()?.selectAllChildren(document.activeElement!.previousElementSibling!)
    }
  }
  return <div class="command"><code>{line}</code><button class="tool" onClick={copy}>{copied.value ? 'Copied' : 'Copy'}</button></div>
}

export function Segments<T extends string>({ label, of, value, set }: { label: string; of: [T, string][]; value: T; set: (v: T) => void }) {
  return <div class="segments" role="group" aria-label={label}>{of.map(([v, text]) => <button aria-pressed={v === value} onClick={() => set(v)}>{text}</button>)}</div>
}

export function PlainTable({ head, rows, nums = [], caption, class: kind = '' }: { head: ComponentChildren[]; rows: ComponentChildren[][]; nums?: number[]; caption?: string; class?: string }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={caption ?? head.join(', ')}><table class={`plain ${kind}`}>
      {caption && <caption class="hidden">{caption}</caption>}
      {head.some(h => h) && <thead><tr>{head.map((h, i) => <th scope="col" class={nums.includes(i) ? 'num' : ''}>{h}</th>)}</tr></thead>}
      <tbody>{rows.map(r => <tr>{r.map((c, i) => <td class={nums.includes(i) ? 'num' : ''}>{c}</td>)}</tr>)}</tbody>
    </table></div>
  )
}
