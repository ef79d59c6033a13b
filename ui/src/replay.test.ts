import { expect, it } from 'vitest'
import { answerInside } from './inside'
import { since } from './moment'
import { valueAt } from './parts/chart'
import { overlay } from './parts/overlay'
import { neighbour } from './parts/scrubber'

it.each([[0, '0s'], [1500, '1.5s'], [61000, '1m1s'], [3600e3, '1h0s'], [3723004, '1h2m3.004s'], [-5, '0s']])('%s ms are written as %s', (ms, text) => expect(since(ms)).toBe(text))

it.each([
  [0, 1, 5], [5, 1, 9], [5, -1, 0], [6, -1, 5], [6, 1, 9], [9, 1, 9], [0, -1, 0], [9, -2, 0], [0, 10, 9],
])('from %s by %s changes it goes to %s', (at, step, to) => expect(neighbour([0, 5, 9], at, step)).toBe(to))

it('stays where it is when nothing changes', () => expect(neighbour([], 7, 1)).toBe(7))

it('lays runs over each other on the times of both, each up to its own end', () => {
  const line = (values: number[]) => ({ label: '', colour: '', values })
  const o = overlay({ times: [0, 2, 6], lines: [line([1, 2, 3])] }, { times: [1, 2], lines: [line([7, 8])] })
  expect(o.times).toEqual([0, 1, 2, 6])
  expect(o.lines.map(l => l.values)).toEqual([[1, 1, 2, 3], [null, 7, 8, null]])
})

it('has what grows on its way between two values, and ends it with its drawing', () => {
  const line = (values: (number | null)[]) => ({ label: '', colour: '', values, grows: true })
  const o = overlay({ times: [0, 4, 8], lines: [line([0, 4, null])] }, { times: [1, 2, 10], lines: [line([0, 1, 9])] })
  expect(o.lines.map(l => l.values)).toEqual([[0, 1, 2, 4, null, null], [null, 0, 1, 3, 7, 9]])
})

it.each([[undefined, 3], [5, 2], [2, 2], [0, 1], [-1, NaN], [99, 3]])('at %s a line says %s', (at, want) => expect(valueAt([0, 2, 6, 8], [1, 2, 3, null], at)).toBe(want))

const inside = {
  overview: { pods: 3 },
  pods: { total: 3, items: [{ namespace: 'a', name: 'x', state: 'Placed' }, { namespace: 'a', name: 'y', state: 'Rejected' }, { namespace: 'b', name: 'xy', state: 'Placed' }] },
  decisions: { items: [{ seq: 1, kind: 'Placed', pod: 'a/x' }, { seq: 2, kind: 'Waits', pod: 'a/y' }, { seq: 3, kind: 'Placed', pod: 'b/xy' }] },
}
it.each([
  ['overview', {}, inside.overview], ['none', {}, undefined], ['decisions/2', {}, inside.decisions.items[1]], ['decisions/9', {}, undefined],
])('a report answers %s', (path, query, want) => expect(answerInside(inside, path, query)).toEqual(want))
it.each([
  ['pods', { q: 'x' }, 2], ['pods', { state: 'pending' }, 1], ['pods', { namespace: 'a', limit: 1 }, 1], ['decisions', { kind: 'Placed' }, 2], ['decisions', { pod: 'a/y', kind: '' }, 1], ['decisions', { limit: 2 }, 2],
])('a report answers %s with %j', (path, query, rows) => expect((answerInside(inside, path, query) as { items: unknown[] }).items.length).toBe(rows))
it.each([
  [{ total: 3, items: 'ppr' }, {}, 3], [{ total: 9, items: 'prr' }, {}, 9], // all, and the first of nine
  [{ total: 9, items: 'prr' }, { state: 'pending' }, 2], // all that wait are inside: one that doesn't is
  [{ total: 9, items: 'rrr' }, { state: 'pending' }, 7], // as many as the overview says
  [{ total: 3, items: 'rrr' }, { state: 'pending' }, 3], [{ total: 9, items: 'prr' }, { q: 'x1' }, 1],
])('of the pods %j it says for %j how many there are', ({ total, items }, query, want) => {
  const pods = { total, items: [...items].map((x, i) => ({ namespace: 'a', name: `x${i}`, state: x === 'p' ? 'Placed' : 'Rejected' })) }
  expect((answerInside({ overview: { pods: { pending: 7 } }, pods }, 'pods', query) as { total: number }).total).toBe(want)
})
it('has the newest decisions', () => expect((answerInside(inside, 'decisions', { limit: 1 }) as { items: { seq: number }[] }).items[0]?.seq).toBe(3))
