import { describe, expect, it } from 'vitest'
import { readOn, renewed, same, type List } from '../api'
import { beside, layOut, sameShape } from '../pages/map'
import type { Node } from '../types'
import { inOrder, sorted, type Column } from './table'

const row = (name: string, v = 0) => ({ name, v })
const names = (rows: { name: string }[]) => rows.map(r => r.name).join(' ')
const key = (r: { name: string }) => r.name

describe('a list of which one page is read anew', () => {
  const have = ['a', 'b', 'c', 'd', 'e'].map(n => row(n))
  it('what is after the page stays', () => expect(names(renewed(have, 0, { items: [row('a'), row('b', 1)], continue: 'x' }, key))).toBe('a b c d e'))
  it('what came and what went is seen in its page', () => expect(names(renewed(have, 1, { items: [row('aa'), row('c')], continue: 'x' }, key))).toBe('a aa c d e'))
  it('the last page ends the list', () => expect(names(renewed(have, 3, { items: [row('d')] }, key))).toBe('a b c d'))
  it('an empty last page, too', () => expect(names(renewed(have, 3, { items: [] }, key))).toBe('a b c'))
  it('rows that say the same stay the same', () => {
    const out = renewed(have, 0, { items: [row('a'), row('b', 1)], continue: 'x' }, key)
    expect(out[0]).toBe(have[0])
    expect(out[1]).toEqual(row('b', 1))
  })
  it('a list that says the same stays the same', () => expect(renewed(have, 3, { items: [row('d'), row('e')] }, key)).toBe(have))
})

describe('same', () => {
  it.each([[1, 1, true], [1, 2, false], ['a', 'a', true], [null, {}, false], [{ a: 1 }, { a: 1 }, true], [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ a: 1, b: 2 }, { a: 1 }, false], [[1, [2]], [1, [2]], true], [[1, 2], [2, 1], false], [{ a: undefined }, {}, false]])('%j and %j', (a, b, want) => expect(same(a, b)).toBe(want))
})

describe('rows in the order of before', () => {
  it('come with what they say now, and new ones last', () => {
    const out = inOrder([row('a', 1), row('x'), row('c', 1)], [row('c'), row('b'), row('a')], key)
    expect(out).toEqual([row('c', 1), row('a', 1), row('x')])
  })
})

describe('a sorted table', () => {
  const columns: Column<ReturnType<typeof row>>[] = [{ key: 'v', label: 'v', show: () => '', by: r => r.v }]
  const rows = [row('a', 1), row('b', 2), row('c', 1), row('d', NaN), row('e', NaN)]
  it.each([['v', 'd e a c b'], ['-v', 'b a c d e'], ['other', 'a b c d e']])('by %s has equal rows as they come, whatever came before', (order, want) =>
    expect(names(sorted(rows, columns, order, inOrder(rows, [...rows].reverse(), key)))).toBe(want))
})

describe('a list of many pages', () => {
  const name = (i: number) => String(i).padStart(6, '0')
  // A list of so many rows, whose values are those of the time at which a page was read.
  const list = (size: number) => {
    const x = { clock: 100000, asked: 0, list: undefined as List<ReturnType<typeof row>> | undefined, round: { done: 0, rows: 0, at: 0 }, tick: async () => {
      x.asked = 0
      ;[x.list, x.round] = await readOn<ReturnType<typeof row>, List<ReturnType<typeof row>>>(x.list, x.round, async next => {
        x.asked++
        const from = Number(next ?? 0), to = Math.min(size, from + 1000)
        return { items: Array.from({ length: to - from }, (_, i) => row(name(from + i), x.clock)), continue: to < size ? String(to) : undefined }
      }, key, () => x.clock)
    } }
    return x
  }
  it.each([[500, 1], [5000, 1], [20000, 4], [20001, 5]])('%i rows are read anew within five ticks, %i pages with each', async (size, pages) => {
    const x = list(size)
    await x.tick()
    expect([x.list!.items.length, x.asked]).toEqual([size, Math.ceil(size / 1000)])
    for (let i = 0; i < 20; i++) {
      x.clock += 2000
      await x.tick()
      expect(x.asked).toBeLessThanOrEqual(pages)
      expect(x.list!.items.length).toBe(size)
      expect(x.clock - Math.min(...x.list!.items.map(r => r.v))).toBeLessThanOrEqual(i < 5 ? 2000 * i + 2000 : 8000)
    }
  })
  it('is read as a whole after a long rest', async () => {
    const x = list(3000)
    await x.tick()
    x.clock += 3600e3
    await x.tick()
    expect(new Set(x.list!.items.map(r => r.v))).toEqual(new Set([x.clock]))
  })
})

describe('the map', () => {
  const node = (name: string, cpu: string, share = 0, group?: string) => ({ name, group, resources: [{ resource: 'cpu', allocatable: cpu, requested: '0', share }] }) as unknown as Node
  const nodes = [node('a', '4'), node('b', '8'), node('c', '4', 0, 'g')]
  it('lays every node out, as large as its cores', () => {
    const l = layOut(nodes, 'cpu', 400, 300)
    expect(l.boxes.map(b => b.at).sort()).toEqual([0, 1, 2])
    const area = (at: number) => { const b = l.boxes.find(b => b.at === at)!; return b.w * b.h }
    expect(area(1)).toBeGreaterThan(area(0))
    expect(l.titles.map(t => t.text)).toEqual(['in no group · 2', 'g · 1'])
  })
  it('another use is no other shape', () => expect(sameShape(nodes, [node('a', '4', 0.9), nodes[1]!, nodes[2]!], 'cpu')).toBe(true))
  it('other cores are, unless all are equal', () => {
    const other = [node('a', '16'), nodes[1]!, nodes[2]!]
    expect(sameShape(nodes, other, 'cpu')).toBe(false)
    expect(sameShape(nodes, other, 'equal')).toBe(true)
  })
  it('another group or another name is', () => {
    expect(sameShape(nodes, [node('a', '4', 0, 'g'), nodes[1]!, nodes[2]!], 'cpu')).toBe(false)
    expect(sameShape(nodes, [node('z', '4'), nodes[1]!, nodes[2]!], 'cpu')).toBe(false)
    expect(sameShape(nodes, nodes.slice(1), 'cpu')).toBe(false)
  })
  it('keys go to what is beside', () => {
    const boxes = [[0, 0], [10, 0], [0, 10], [10, 10]].map(([x, y], at) => ({ at, x: x!, y: y!, w: 10, h: 10 }))
    expect(['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'End', 'Home'].map(k => beside(boxes, 1, k))).toEqual([2, 0, 3, 1, 3, 0])
  })
})
