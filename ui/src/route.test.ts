import { expect, it } from 'vitest'
import { href, parse } from './route'

it.each([['', '', ''], ['#/', '', ''], ['#/nodes', 'nodes', ''], ['#/nodes?group=a&sort=-price', 'nodes', 'a']])('%s', (hash, page, group) => {
  const r = parse(hash)
  expect([r.page, r.params.get('group') ?? '']).toEqual([page, group])
})

it('what is written is read', () => {
  const h = href('pending', { pod: 'team a/x&y', by: undefined })
  expect(h).toBe('#/pending?pod=team+a%2Fx%26y')
  expect(parse(h).params.get('pod')).toBe('team a/x&y')
})
