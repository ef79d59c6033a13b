import { describe, expect, it } from 'vitest'
import { age, amount, bytes, cash, clock, middle, money, percent, plural, quantity, round, seconds, span } from './format'

describe('amounts', () => {
  it.each([['250m', 0.25], ['16Gi', 16 * 2 ** 30], ['4', 4], ['1e3', 1000], ['1.5k', 1500], [7, 7]])('quantity %s', (q, n) => expect(quantity(q)).toBe(n))
  it.each(['', 'x', '1 Gi', undefined])('%s is no quantity', q => expect(quantity(q)).toBeNaN())
  it.each([[0, '0'], [1023, '1,023'], [1024, '1Ki'], [1536, '1.5Ki'], [16 * 2 ** 30, '16Gi'], [NaN, '–']])('bytes %d', (n, s) => expect(bytes(n)).toBe(s))
  it('are written by resource', () => {
    expect(amount('memory', '512Mi')).toBe('512Mi')
    expect(amount('cpu', '1500m')).toBe('1.5')
    expect(amount('cpu', undefined)).toBe('–')
  })
  it.each([[1234.5, '1,235'], [12.34, '12.3'], [0.123, '0.12'], [3, '3']])('round %d', (n, s) => expect(round(n)).toBe(s))
  it.each([[0, '0 %'], [0.004, '<1 %'], [0.715, '72 %'], [undefined, '–']])('percent %s', (n, s) => expect(percent(n)).toBe(s))
  it('money', () => {
    expect(money(0.5)).toBe('$0.50/h')
    expect(money(1230)).toBe('$1,230/h')
    expect(money(2, 'EUR')).toBe('2.00 EUR/h')
    expect(money(undefined)).toBe('–')
    expect([cash(1.234), cash(2, 'EUR'), cash(NaN)]).toEqual(['$1.23', '2.00 EUR', '–'])
  })
  it('plural', () => expect([plural(1, 'node'), plural(2000, 'node')]).toEqual(['1 node', '2,000 nodes']))
})

describe('times', () => {
  it.each([[0, '0s'], [0.25, '0.25s'], [59, '59s'], [61, '1m1s'], [3600, '1h'], [16860, '4h41m'], [90000, '1d1h'], [40 * 86400, '40d'], [NaN, '–']])('span %d', (n, s) => expect(span(n)).toBe(s))
  it.each([['1h2m3.5s', 3723.5], ['250ms', 0.25], ['-5s', -5], ['0s', 0]])('seconds %s', (d, n) => expect(seconds(d)).toBeCloseTo(n))
  it.each(['', 'x', '5'])('%s is no duration', d => expect(seconds(d)).toBeNaN())
  const now = Date.parse('2026-11-27T20:00:00Z')
  it.each([['2026-11-27T19:59:18Z', '42s'], ['2026-11-27T19:59:59.49Z', '1s'], ['2026-11-27T19:59:59.9Z', '0s'], [undefined, '–']])('age of %s', (time, want) => expect(age(time, now)).toBe(want))
  it('the date stands beside times of other days', () => {
    expect(clock('2026-11-27T19:59:18Z', true, now)).toBe('19:59:18')
    expect(clock('2026-11-26T19:59:18Z', true, now)).toBe('2026-11-26 19:59:18')
    expect(clock(undefined, true, now)).toBe('–')
  })
})

it('names lose their middle', () => {
  expect(middle('ip-10-0-0-1', 20)).toBe('ip-10-0-0-1')
  expect(middle('abcdefghij', 5)).toBe('ab…ij')
})
