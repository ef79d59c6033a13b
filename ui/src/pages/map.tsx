import { hierarchy, treemap } from 'd3-hierarchy'
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { currency, prices } from '../api'
import { amount, money, percent, plural, quantity } from '../format'
import { kindOf, kinds, nodeState } from '../names'
import { go, param } from '../route'
import { printing, systemDark, theme } from '../settings'
import type { Node } from '../types'

// The map draws a rectangle for each node, in its group. Thousands of elements take a browser seconds, so they are drawn
// on a canvas; the node that has the focus, and the one that had it before, are buttons above it.
//
// What must hold: nodes are laid out anew only when their names, groups or sizes change, and one whose row is the same
// object as before isn't drawn again.

type Size = 'cpu' | 'price' | 'equal'
type Colour = 'use' | 'state'

const sizeParam = (): Size => (param('size') || (prices.value ? 'price' : 'cpu')) as Size
const colourParam = (): Colour => (param('colour') || 'use') as Colour

/** MapChoices are what the map's rectangles mean. */
export function MapChoices() {
  return <>
    <label>Size <select value={sizeParam()} onChange={e => go({ size: e.currentTarget.value }, true)}>{prices.value && <option value="price">price</option>}<option value="cpu">cores</option><option value="equal">equal</option></select></label>
    <label>Colour <select value={colourParam()} onChange={e => go({ colour: e.currentTarget.value }, true)}><option value="use">requested share</option><option value="state">state</option></select></label>
  </>
}

/** Box is where a node is drawn, in pixels. at is the node's place in the list. */
export interface Box { at: number; x: number; y: number; w: number; h: number }

/** Layout is where all nodes are, in the order of their sizes, and what is written above each group. */
interface Layout { of: Node[]; size: Size; width: number; height: number; em: number; boxes: Box[]; titles: { x: number; y: number; w: number; text: string }[] }

const sizeOf = (n: Node, size: Size): number =>
  size === 'equal' ? 1 : size === 'price' ? n.price ?? 0 : quantity(n.resources.find(r => r.resource === 'cpu')?.allocatable) || 0

/** sameShape says that two lists of nodes are laid out alike. Pure. */
export const sameShape = (a: Node[], b: Node[], size: Size): boolean =>
  a.length === b.length && a.every((x, i) => x === b[i] || (x.name === b[i]!.name && x.group === b[i]!.group && sizeOf(x, size) === sizeOf(b[i]!, size)))

interface Leaf { name: string; at?: number; children?: Leaf[] }

/** layOut places nodes. em is the height of the page's text in pixels: a group's title has room for a line. Pure. */
export function layOut(nodes: Node[], size: Size, width: number, height: number, em = 14): Layout {
  const groups = new Map<string, Leaf[]>()
  nodes.forEach((n, at) => {
    const g = n.group ?? 'in no group'
    if (!groups.has(g)) groups.set(g, [])
    groups.get(g)!.push({ name: n.name, at })
  })
  const sizes = nodes.map(n => sizeOf(n, size))
  const least = sizes.reduce((m, s) => (s > 0 ? Math.min(m, s) : m), Infinity)
  // What has no size of its own is as small as the smallest, so that every node is there.
  const value = (l: Leaf) => (l.at === undefined ? 0 : sizes[l.at] || (least < Infinity ? least : 1))
  const h = hierarchy<Leaf>({ name: '', children: [...groups].map(([name, children]) => ({ name, children })) }).sum(value).sort((a, b) => (b.value ?? 0) - (a.value ?? 0))
  const root = treemap<Leaf>().size([width, height]).paddingTop(d => (d.depth === 1 ? Math.round(em * 1.43) : 0)).paddingInner(d => (d.depth === 0 ? 8 : 0)).round(true)(h)
  return {
    of: nodes, size, width, height, em,
    boxes: root.leaves().filter(l => l.data.at !== undefined).map(l => ({ at: l.data.at!, x: l.x0, y: l.y0, w: Math.max(0, l.x1 - l.x0), h: Math.max(0, l.y1 - l.y0) })),
    titles: (root.children ?? []).map(g => ({ x: g.x0 + 3, y: g.y0 + em, w: g.x1 - g.x0, text: `${g.data.name} · ${g.children?.length ?? 0}` })),
  }
}

/** beside returns the box that a key goes to: left and right in the order of the boxes, up and down by where they are.
 * It is the same one where there is none. Pure. */
export function beside(boxes: Box[], from: number, key: string): number {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[key]
  if (step !== undefined) return Math.min(boxes.length - 1, Math.max(0, from + step))
  const b = boxes[from]!, x = b.x + b.w / 2, down = key === 'ArrowDown'
  let best = from, least = Infinity
  boxes.forEach((o, i) => {
    const away = down ? o.y - (b.y + b.h) : b.y - (o.y + o.h)
    const aside = Math.max(0, o.x - x, x - (o.x + o.w))
    if (i !== from && away >= 0 && away + 4 * aside < least) [best, least] = [i, away + 4 * aside]
  })
  return best
}

const fullest = (n: Node): number => Math.min(1, Math.max(...n.resources.map(r => r.share), 0))
/** mixed is how much of the colour of use a share has; the rest is the colour of what is idle. */
const mixed = (share: number): number => 0.12 + 0.88 * share

const stateColour: Record<string, string> = { ready: 'good-fill', notReady: 'bad-fill', cordoned: 'strong', candidate: 'wait-fill', leaving: 'warn-fill' }
/** stateMark tells states apart without colours. */
const stateMark: Record<string, string> = { notReady: '✕ ', cordoned: '– ', candidate: '… ', leaving: '! ' }

/** fit cuts a text to a width; a letter of the map's takes about 0.47 of the height of the page's text. */
const fit = (s: string, width: number, em: number) => (width < 2.1 * em ? '' : s.length * 0.47 * em > width ? s.slice(0, Math.max(1, Math.floor(width / (0.47 * em)) - 1)) + '…' : s)

/** named is how many nodes at most have their names on them. */
const named = 400

/** drawing draws boxes onto a canvas in the colours that the page has now. */
function drawing(canvas: HTMLCanvasElement, l: Layout, colour: Colour) {
  const style = getComputedStyle(canvas), of = (name: string) => style.getPropertyValue('--' + name)
  const em = l.em, names = new Set(l.boxes.filter(b => b.w > 4 * em && b.h > 1.57 * em).slice(0, named))
  const c = canvas.getContext('2d')!
  const write = (text: string, x: number, y: number, size: number, tone: string) => {
    c.font = `${size}px ${style.fontFamily}`
    c.fillStyle = of(tone)
    c.fillText(text, x, y)
  }
  return {
    all() {
      const scale = Math.min(3, devicePixelRatio || 1)
      canvas.width = Math.round(l.width * scale)
      canvas.height = Math.round(l.height * scale)
      c.scale(scale, scale)
      for (const t of l.titles) write(fit(t.text, t.w, em), t.x, t.y, 0.86 * em, 'soft')
    },
    one(b: Box, n: Node) {
      const gap = b.w > 3 && b.h > 3 ? 1 : 0
      const box = [b.x, b.y, Math.max(1, b.w - gap), Math.max(1, b.h - gap)] as const
      c.fillStyle = of(colour === 'state' ? stateColour[kindOf(n)]! : 'idle')
      c.fillRect(...box)
      if (colour === 'use') {
        c.globalAlpha = mixed(fullest(n))
        c.fillStyle = of('cpu')
        c.fillRect(...box)
        c.globalAlpha = 1
      }
      if (!names.has(b)) return
      const text = fit((colour === 'state' ? stateMark[kindOf(n)] ?? '' : '') + n.name, b.w - 8, em), x = b.x + 5, y = b.y + 1.07 * em
      c.strokeStyle = of('panel')
      c.lineWidth = 3
      c.lineJoin = 'round'
      c.font = `${0.79 * em}px ${style.fontFamily}`
      c.strokeText(text, x, y)
      write(text, x, y, 0.79 * em, 'text')
    },
  }
}

const shareOf = (n: Node, resource: string): number | undefined => n.resources.find(r => r.resource === resource)?.share

const spoken = (n: Node): string => `${n.name}, ${percent(shareOf(n, 'cpu'))} of cpu, ${nodeState(n)[0]}`

const hint = (n: Node): string => [
  n.name, ...['cpu', 'memory'].map(x => n.resources.find(r => r.resource === x)).filter(r => r !== undefined).map(r => `${amount(r.resource, r.requested)} of ${amount(r.resource, r.allocatable)} ${r.resource}`),
  nodeState(n)[0], n.price ? money(n.price, currency.value) : '',
].filter(Boolean).join('\n')

/** NodeMap draws a rectangle for each node in its group. The table has the same. */
export function NodeMap({ nodes, choose }: { nodes: Node[]; choose: (name: string) => void }) {
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null), over = useRef<HTMLDivElement>(null)
  const width = useSignal(0), top = useSignal(260), em = useSignal(14)
  useLayoutEffect(() => {
    const measure = () => {
      width.value = box.current?.clientWidth ?? 1000
      em.value = parseFloat(getComputedStyle(document.documentElement).fontSize) || 14 // larger on a large screen
      top.value = (box.current?.getBoundingClientRect().top ?? 260) + scrollY
    }
    measure()
    const watch = new ResizeObserver(measure)
    watch.observe(box.current!)
    return () => watch.disconnect()
  }, [])
  const size = sizeParam(), colour = colourParam()
  const height = Math.max(360, Math.min(1700, innerHeight - top.value - 56)) // so that the legend below it is in view
  const last = useRef<Layout>(undefined)
  const l = useMemo(() => {
    const p = last.current
    const same = p && p.size === size && p.width === width.value && p.height === height && p.em === em.value && sameShape(p.of, nodes, size)
    if (same) p.of = nodes
    return (last.current = same ? p : layOut(nodes, size, width.value, height, em.value))
  }, [nodes, size, width.value, height, em.value])

  // What was drawn, and how: the same again costs nothing.
  const drawn = useRef<{ how: string; layout: Layout; nodes: Node[] }>(undefined)
  const how = `${colour} ${theme.value} ${systemDark.value} ${printing.value}`
  useLayoutEffect(() => {
    if (!canvas.current || l.width === 0) return
    const d = drawing(canvas.current, l, colour)
    const before = drawn.current?.how === how && drawn.current.layout === l ? drawn.current.nodes : undefined
    if (!before) d.all()
    for (const b of l.boxes) if (before?.[b.at] !== nodes[b.at]) d.one(b, nodes[b.at]!)
    drawn.current = { how, layout: l, nodes }
  }, [l, nodes, how])

  const focus = useSignal<{ now: string; before?: string; move?: boolean }>({ now: '' })
  const places = useMemo(() => new Map(l.boxes.map((b, i) => [nodes[b.at]!.name, i])), [l])
  const current = places.get(focus.value.now) ?? 0
  const keys = (e: KeyboardEvent) => {
    if (!/^(Arrow|Home$|End$)/.test(e.key) || l.boxes.length === 0) return
    e.preventDefault()
    const to = beside(l.boxes, current, e.key)
    if (to !== current) focus.value = { now: nodes[l.boxes[to]!.at]!.name, before: nodes[l.boxes[current]!.at]!.name, move: true }
  }
  useLayoutEffect(() => { // before the next key comes
    if (focus.value.move) box.current?.querySelector<HTMLElement>('.node[tabindex="0"]')?.focus()
  }, [focus.value])
  const buttons = [...new Set([places.get(focus.value.before ?? ''), current])].filter(i => i !== undefined && i < l.boxes.length) as number[]

  const under = (e: MouseEvent): Box | undefined => {
    const at = canvas.current!.getBoundingClientRect(), x = e.clientX - at.left, y = e.clientY - at.top
    return l.boxes.find(b => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h)
  }
  const point = (e: MouseEvent) => {
    const b = under(e)
    over.current!.hidden = !b
    canvas.current!.title = b ? hint(nodes[b.at]!) : ''
    canvas.current!.style.cursor = b ? 'pointer' : ''
    if (b) Object.assign(over.current!.style, place(b))
  }
  const open = (e: MouseEvent) => {
    const b = under(e)
    if (!b) return
    const name = nodes[b.at]!.name
    focus.value = { now: name, move: true } // which gets the focus back when the drawer closes
    choose(name)
  }
  const unpriced = size === 'price' ? nodes.filter(n => !n.price).length : 0
  return (
    <div class="body">
      <div class="map" ref={box} role="application" aria-label="Nodes by group; arrow keys go from node to node, Enter opens one; the table has the same" style={{ minHeight: `${height}px` }}>
        <canvas ref={canvas} aria-hidden="true" style={{ aspectRatio: `${Math.max(1, l.width)} / ${height}` }} onMouseMove={point} onMouseLeave={() => (over.current!.hidden = true)}
          onClick={open} />
        <div class="over" ref={over} hidden aria-hidden="true" />
        {l.width > 0 && buttons.map(i => {
          const n = nodes[l.boxes[i]!.at]!
          return <button key={n.name} class="node" data-name={n.name} tabIndex={i === current ? 0 : -1} aria-label={spoken(n)} title={hint(n)} style={place(l.boxes[i]!)} onKeyDown={keys} onClick={() => choose(n.name)} />
        })}
      </div>
      <Legend colour={colour} unpriced={unpriced} />
    </div>
  )
}

const place = (b: Box) => ({ left: `${b.x}px`, top: `${b.y}px`, width: `${Math.max(2, b.w - 1)}px`, height: `${Math.max(2, b.h - 1)}px` })

function Legend({ colour, unpriced }: { colour: Colour; unpriced: number }) {
  return (
    <p class="legend">{colour === 'use'
      ? <><span>requested share of the fullest resource:</span>{[0.05, 0.3, 0.6, 0.9].map(s => <span><i style={{ background: `color-mix(in srgb, var(--cpu) ${Math.round(100 * mixed(s))}%, var(--idle))` }} />{percent(s)}</span>)}</>
      : kinds.slice(1).map(([k, text]) => <span><i style={{ background: `var(--${stateColour[k]})` }} />{stateMark[k]}{text}</span>)}
      {unpriced > 0 && <span>{plural(unpriced, 'node')} without a price {unpriced === 1 ? 'is' : 'are'} drawn as small as the cheapest</span>}</p>
  )
}
