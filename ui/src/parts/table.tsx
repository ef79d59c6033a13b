import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { count } from '../format'
import { go, param } from '../route'
import { printing } from '../settings'
import { Nothing } from './basics'

/** Column is one of a table's. What it sorts by is a number or a text; without, it can't be sorted. */
export interface Column<T> {
  key: string
  label: string
  show: (row: T) => ComponentChildren
  by?: (row: T) => number | string
  num?: boolean
  width?: string
  hint?: string
  /** On a phone its text has two lines. */
  two?: boolean
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  rows: T[]
  id: (row: T) => string
  open?: (row: T) => void
  selected?: string
  /** What the URL calls the sort order, where a page has several tables. */
  sort?: string
  first?: string // the order to begin with, such as "-price"
}

const height = 36
/** onPaper is how many rows are printed at most. */
const onPaper = 500

const collator = new Intl.Collator('en', { numeric: true })

/** sorted returns rows in the order that the text asks for: a column's key, "-" before it for the largest first. Equal rows
 * stay as they come. begin has the same rows in an order that is near to the one that is wanted. */
export function sorted<T>(rows: T[], columns: Column<T>[], order: string, begin = rows): T[] {
  const down = order.startsWith('-')
  const by = columns.find(c => c.key === order.replace(/^-/, ''))?.by
  if (!by) return rows
  const keys = new Map(rows.map((r, at) => [r, { by: by(r), at }]))
  const compare = (a: number | string, b: number | string) =>
    a === b ? 0 : typeof a === 'number' && typeof b === 'number'
      ? (Number.isNaN(a) ? -Infinity : a) - (Number.isNaN(b) ? -Infinity : b)
      : collator.compare(String(a), String(b))
  return [...begin].sort((a, b) => {
    const x = keys.get(a)!, y = keys.get(b)!
    return (down ? -1 : 1) * compare(x.by, y.by) || x.at - y.at
  })
}

/** inOrder returns rows in the order in which they were before, and then those that are new. Pure. */
export function inOrder<T>(rows: T[], before: T[], id: (row: T) => string): T[] {
  const now = new Map(rows.map(r => [id(r), r]))
  const out: T[] = []
  for (const b of before) {
    const k = id(b), r = now.get(k)
    if (r !== undefined) {
      out.push(r)
      now.delete(k)
    }
  }
  return out.concat([...now.values()])
}

interface RowProps<T> {
  row: T
  at: number
  columns: Column<T>[]
  chosen?: boolean
  tab?: number
  act: { open: ((row: T) => void) | undefined; move: (e: KeyboardEvent, at: number) => void }
}

/** Row draws a row, and draws it anew when a signal that it reads has changed. */
function Row<T>({ row, at, columns, chosen, tab, act }: RowProps<T>) {
  return (
    <div role="row" class={act.open ? 'body-row' : ''} aria-rowindex={at + 2} aria-selected={chosen} tabIndex={tab} onClick={() => act.open?.(row)} onKeyDown={e => act.move(e, at)}>
      {columns.map(c => <div role="cell" class={c.num ? 'num' : c.two ? 'two' : ''}>{c.two ? <span>{c.show(row)}</span> : c.show(row)}</div>)}
    </div>
  )
}

/** Table shows rows, of which only those in view are in the document. */
export function Table<T>({ label, columns, rows, id, open, selected, sort = 'sort', first = '' }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null)
  const window_ = useSignal({ from: 0, to: 60 })
  const order = param(sort) || first
  const before = useRef<{ order: string; list: T[] }>({ order: '', list: [] })
  const list = useMemo(() => {
    // Sorting what is nearly sorted takes one comparison a row: the rows of before come in the order of before.
    const list = sorted(rows, columns, order, before.current.order === order ? inOrder(rows, before.current.list, id) : rows)
    before.current = { order, list }
    return list
  }, [rows, order])

  const look = () => {
    const el = scroller.current
    if (!el) return
    const from = Math.max(0, Math.floor(el.scrollTop / height) - 10)
    const to = Math.ceil((el.scrollTop + (el.clientHeight || innerHeight)) / height) + 10
    if (from !== window_.value.from || to !== window_.value.to) window_.value = { from, to }
  }
  useEffect(() => {
    look()
    const watch = new ResizeObserver(look)
    if (scroller.current) watch.observe(scroller.current)
    return () => watch.disconnect()
  }, [])

  const move = (e: KeyboardEvent, at: number) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[e.key]
    if (step !== undefined && !e.metaKey && !e.ctrlKey) {
      e.preventDefault()
      focus(Math.min(list.length - 1, Math.max(0, at + step)))
    } else if (e.key === 'Enter' && open) {
      e.preventDefault()
      open(list[at]!)
    }
  }
  const focus = (at: number) => {
    const el = scroller.current!
    const top = at * height
    if (top < el.scrollTop) el.scrollTop = top
    if (top + 2 * height > el.scrollTop + el.clientHeight) el.scrollTop = top + 2 * height - el.clientHeight
    look()
    const row = () => el.querySelector<HTMLElement>(`[aria-rowindex="${at + 2}"]`)
    if (row()) row()!.focus()
    else requestAnimationFrame(() => row()?.focus()) // it is drawn by then
  }

  // One object for all rows and all time, since a row that isn't drawn anew keeps what it was given.
  const act = useRef<RowProps<T>['act']>({ open: undefined, move: () => {} })
  Object.assign(act.current, { open, move })

  const { from, to } = printing.value ? { from: 0, to: onPaper } : window_.value
  const shown = list.slice(from, to)
  const tabbable = Math.max(from, selected ? list.findIndex(r => id(r) === selected) : 0)
  // What is drawn again as the same element isn't compared with what is in the document.
  const kept = useRef(new Map<string, VNode<RowProps<T>>>())
  const drawn = new Map<string, VNode<RowProps<T>>>()
  const elements = shown.map((row, i) => {
    const props: RowProps<T> = { row, at: from + i, columns, chosen: open ? id(row) === selected : undefined, tab: open ? (from + i === tabbable ? 0 : -1) : undefined, act: act.current }
    const was = kept.current.get(id(row))
    const same = was && (Object.keys(props) as (keyof RowProps<T>)[]).every(k => was.props[k] === props[k])
    const now = same ? was : <Row<T> key={id(row)} {...props} /> as VNode<RowProps<T>>
    drawn.set(id(row), now)
    return now
  })
  kept.current = drawn
  return (
    <div class="scroll" ref={scroller} onScroll={look} tabIndex={-1}>
      <div class="grid" role="table" aria-label={label} aria-rowcount={list.length + 1}
        style={{ gridTemplateColumns: columns.map(c => c.width ?? 'max-content').join(' '), '--columns': columns.length }}>
        <div role="row" class="head" aria-rowindex={1}>
          {columns.map(c => {
            const up = order === c.key, down = order === '-' + c.key
            return (
              <div role="columnheader" class={c.num ? 'num' : ''} title={c.hint} aria-sort={up ? 'ascending' : down ? 'descending' : undefined}>
                {c.by ? <button onClick={() => go({ [sort]: down || (!up && !c.num) ? c.key : up ? '-' + c.key : '-' + c.key }, true)}>
                  {c.label}{up ? ' ▲' : down ? ' ▼' : ''}</button> : <span class="soft">{c.label}</span>}
              </div>
            )
          })}
        </div>
        <div class="filler" style={{ height: `${from * height}px` }} />
        {elements}
        {!printing.value && <div class="filler" style={{ height: `${Math.max(0, list.length - to) * height}px` }} />}
      </div>
      {printing.value && list.length > to && <p class="empty">and {count(list.length - to)} more</p>}
      {list.length === 0 && <Nothing />}
    </div>
  )
}
