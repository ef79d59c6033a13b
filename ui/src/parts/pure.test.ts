import { describe, expect, it } from 'vitest'
import { address } from '../api'
import { about, attentionHref, decisionTone, groupState, nodeState, owner, sentence, words } from '../names'
import { folded } from '../pages/pod'
import { gapIn, leftOut, merge } from '../tail'
import type { Attention, Decision, Group } from '../types'
import { stack, thin } from './chart'
import { sorted, type Column } from './table'

describe('tables', () => {
  const columns: Column<{ n: string; v: number }>[] = [
    { key: 'n', label: 'n', show: r => r.n, by: r => r.n },
    { key: 'v', label: 'v', show: r => r.v, by: r => r.v },
    { key: 'x', label: 'x', show: () => '' },
  ]
  const rows = [{ n: 'n10', v: 1 }, { n: 'n9', v: NaN }, { n: 'a', v: 3 }]
  it.each([['n', 'a n9 n10'], ['-n', 'n10 n9 a'], ['v', 'n9 n10 a'], ['-v', 'a n10 n9'], ['x', 'n10 n9 a'], ['', 'n10 n9 a']])('by %s', (order, want) =>
    expect(sorted(rows, columns, order).map(r => r.n).join(' ')).toBe(want))
  it('the rows given stay as they are', () => {
    sorted(rows, columns, 'n')
    expect(rows[0]!.n).toBe('n10')
  })
})

describe('charts', () => {
  const line = (...values: (number | null)[]) => ({ label: '', colour: '', values })
  it('the first line lies on top', () => expect(stack([line(1, 2), line(10, null), line(100, 0)])).toEqual([[111, 2], [110, 0], [100, 0]]))
  it('what nobody knows yet is not 0', () => expect(stack([line(null, 2), line(null, null)])).toEqual([[null, 2], [null, null]]))
  it('few points stay, with the last', () => expect(thin([0, 1, 2, 3, 4, 5, 6], 3)).toEqual([0, 3, 6]))
  it('fewer than that all stay', () => expect(thin([1, 2], 3)).toEqual([1, 2]))
})

describe('asking', () => {
  it('a query is in order, and without what is empty', () => expect(address('pods', { state: 'pending', by: '', a: ['x', 'y'], limit: 5 })).toBe('pods?a=x&a=y&limit=5&state=pending'))
})

describe('the newest decisions', () => {
  const list = (...numbers: number[]) => numbers.map(seq => ({ seq }) as Decision)
  it.each([
    ['each is there once', [1, 2], [2, 3], 9, [1, 2, 3]], ['the oldest go', [1, 2], [3], 2, [2, 3]], ['a gap stays', [1, 2], [5, 6], 9, [1, 2, 5, 6]],
    ['what was left out goes between', [1, 2, 6], [3, 4, 5], 9, [1, 2, 3, 4, 5, 6]], ['what is older goes before', [5], [4], 9, [4, 5]],
    ['and is the first to go', [5, 6], [3, 4], 3, [4, 5, 6]], ['the first', [], [7, 8], 9, [7, 8]],
  ])('%s', (_, have, more, most, want) => expect(merge(list(...have), list(...more), most).map(x => x.seq)).toEqual(want))
  it('nothing new is no change', () => {
    const have = list(4, 5)
    expect(merge(have, list(4, 5))).toBe(have)
  })
  it.each([[[], undefined, 0], [[7], undefined, 0], [[7, 8, 9], undefined, 0], [[1, 2, 6, 7], { after: 2, before: 6 }, 3], [[1, 3, 4, 9], { after: 4, before: 9 }, 5]])('%j has the gap %j, %i left out', (numbers, gap, left) => {
    expect(gapIn(list(...numbers))).toEqual(gap)
    expect(leftOut(list(...numbers))).toBe(left)
  })
})

describe('words', () => {
  it.each([
    [{ ready: true, state: 'Leaving', step: 'Draining' }, 'leaving: Draining'],
    [{ ready: false, state: 'Stays' }, 'not ready'],
    [{ ready: true, unschedulable: true }, 'cordoned'],
    [{ ready: true, state: 'Stays', reason: 'NotUnderutilized' }, 'in use'],
    [{ ready: true, state: 'Stays', reason: 'SomethingNew' }, 'something new'],
    [{ ready: true }, 'ready'],
  ])('node %j', (n, want) => expect(nodeState(n)[0]).toBe(want))
  it('groups', () => {
    const g = { name: 'g', launching: 0 } as Group
    expect(groupState(g)[0]).toBe('ready to grow')
    expect(groupState({ ...g, launching: 2 })[0]).toBe('2 launching')
    expect(groupState({ ...g, templateError: 'x' })[1]).toBe('bad')
  })
  it('owners', () => expect([owner(undefined), owner({ kind: 'Job', name: 'j' })]).toEqual(['no controller', 'Job j']))
  it('kinds have tones', () => expect(['Placed', 'NotScaledUp', 'Evicted', 'Queued', 'Waits'].map(decisionTone)).toEqual(['good', 'bad', 'warn', 'wait', 'wait']))
  it.each([
    [{ kind: 'Placed', pod: 'a/x', node: 'n1' }, 'a/x is placed on n1'],
    [{ kind: 'Waits', pod: 'a/x', reason: '0/1 nodes are available.' }, 'a/x finds no node: 0/1 nodes are available.'],
    [{ kind: 'ScaledUp', group: 'g', nodes: 4, reason: 'for 4 pending pod(s); 3->7 (max: 10)' }, '4 nodes of group g ordered: for 4 pending pod(s); from 3 to 7 (max: 10)'],
    [{ kind: 'NodeStays', pod: 'a/x', node: 'n1', reason: 'BlockedByPod: would lose its volume' }, 'n1 stays, kept by a/x: would lose its volume'],
    [{ kind: 'NodeStays', node: 'n1', reason: 'NodeGroupMinSizeReached: its group is at 1' }, 'n1 stays, group at its minimum: its group is at 1'],
    [{ kind: 'NodeStays', text: 'NodeStays: too many', reason: 'too many' }, 'node stays: too many'], // without a node
    [{ kind: 'RoomKept', podGroup: 'a/g', reason: 'on 4 nodes; until 2026-01-01T01:20:00Z' }, 'room is kept for pod group a/g: on 4 nodes; until 2026-01-01 01:20:00 UTC'],
    [{ kind: 'PlanCut', text: 'PlanCut: after 100 steps' }, 'plan cut: after 100 steps'],
    [{ kind: 'Placed', hidden: true }, 'placed hidden'],
  ])('decision %j', (d, want) => expect(sentence(d as Decision)).toBe(want))
  it('a decision is about the node that it decides on', () => expect([about({ kind: 'NodeStays', pod: 'p', node: 'n' } as Decision), about({ kind: 'Placed', pod: 'p', node: 'n' } as Decision)]).toEqual(['n', 'p']))
  it('equal decisions in a row are one line', () => {
    const list = [['Placed', 'a'], ['Waits', 'a'], ['Waits', 'a'], ['Waits', 'b']].map(([kind, pod], i) => ({ seq: i + 1, kind, pod, node: 'n' }) as Decision)
    expect(folded(list).map(({ d, times }) => [d.seq, times])).toEqual([[4, 1], [3, 2], [1, 1]])
  })
  it('splits names', () => expect(words('NotEnoughRoom')).toBe('not enough room'))
  it('attention leads where it belongs', () => {
    const a = (x: Partial<Attention>) => attentionHref({ severity: 'info', kind: 'X', message: '', ...x } as Attention)
    expect(a({ node: 'n/1' })).toBe('#/nodes?node=n%2F1')
    expect(a({ kind: 'PodsRejected' })).toBe('#/pending')
  })
})
