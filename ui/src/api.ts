import { batch, computed, effect, signal, untracked } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { answerInside } from './inside'
import { asked, moment, run, settle } from './moment'
import { now, paused } from './settings'
import { gapIn, merge } from './tail'
import type { Decision, DecisionList, Meta, Outcome, OutcomeList, Overview, StreamedDecisions } from './types'

// All that the page knows comes from here: /api/v1alpha1/ of whoever serves the page, or the answers
// that a report has inside.

/** base is the API's address beside the page's, below any prefix of a proxy. */
const base = typeof location === 'undefined' ? '' : location.pathname.replace(/(ui\/)?[^/]*$/, '') + 'api/v1alpha1/'

/** inside are the answers that a report carries, by path. */
const inside: Record<string, unknown> | undefined = (() => {
  const el = typeof document === 'undefined' ? null : document.getElementById('berth-answers')
  return el ? JSON.parse(el.textContent ?? '{}') : undefined
})()

/** inReport says that the page is a report: it has no more than what is inside. */
export const inReport = inside !== undefined

export class APIError extends Error {
  constructor(public status: number, message: string) {
    super(message)
  }
}

/** waiting is how many requests haven't got their answer yet. */
export const waiting = signal(0)

export type Query = Record<string, string | number | string[] | undefined>

/** address writes path and query, the query in the order of its names. */
export function address(path: string, query: Query = {}): string {
  const q = new URLSearchParams()
  for (const k of Object.keys(query).sort()) {
    const v = query[k]
    for (const one of Array.isArray(v) ? v : [v]) if (one !== undefined && one !== '') q.append(k, String(one))
  }
  const s = q.toString()
  return path + (s ? '?' + s : '')
}

/** whole are the paths whose answers are of a run as a whole. */
const whole = new Set(['meta', 'outcomes', 'series'])

/** timed adds the time that is looked at to a query. */
const timed = (path: string, query: Query): Query => (asked.value && !inside && !whole.has(path) ? { ...query, at: asked.value } : query)

/** get asks for one answer. */
export async function get<T>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  if (inside) {
    const answer = answerInside(inside, path, query)
    if (answer !== undefined) return answer as T
    throw new APIError(404, 'This report doesn’t have that. Open the file it was made from with: berth ui --file FILE')
  }
  const at = address(path, timed(path, query))
  let r: Response
  waiting.value = waiting.peek() + 1
  try {
    r = await fetch(base + at, { signal: abort, credentials: 'same-origin', headers: { Accept: 'application/json' } })
  } catch (e) {
    if (abort?.aborted) throw e
    throw new APIError(0, 'Berth can’t be reached.')
  } finally {
    waiting.value = waiting.peek() - 1
  }
  if (r.ok) {
    try {
      return (await r.json()) as T
    } catch (e) {
      if (abort?.aborted) throw e
      throw new APIError(0, 'The answer isn’t Berth’s. A proxy on the way may want you to sign in again: reload the page.')
    }
  }
  let message = await r.text()
  try {
    message = JSON.parse(message).error ?? message
  } catch {
    if (r.headers.get('Content-Type')?.startsWith('text/html')) message = '' // a proxy's page, which nobody can read here
  }
  throw new APIError(r.status, message.trim() || `${r.status} ${r.statusText}`)
}

// What the stream brings.

export const meta = signal<Meta | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
/** trouble is why nothing new comes, "" while it does. */
export const trouble = signal('')
/** decisions are the newest, the oldest first. What is between two of them and wasn't read is a gap, until fill has read it. */
export const decisions = signal<Decision[]>([])
/** oldest is the number of the oldest decision that Berth still has, as far as is known. */
let oldest = 0

/** clockNow is the time of the cluster: virtual in a replay, otherwise the server's, by which this
 * machine's clock may be off. */
export const clockNow = computed(() => {
  const m = meta.value
  if (!m) return now.value
  return m.capabilities.replay ? (m.capabilities.seek ? moment.value : Date.parse(m.now)) : now.value + skew.value
})
const skew = signal(0)

/** today is clockNow to a quarter of an hour, in which days begin in all time zones. */
export const today = computed(() => Math.floor(clockNow.value / 900e3) * 900e3)
effect(() => {
  const at = overview.value?.at
  if (at) skew.value = Date.parse(at) - Date.now()
})

/** outcomes is what came of runs: of the one that is shown, then of those beside it. */
export const outcomes = signal<Outcome[]>([])

/** prices says that there is money to show. */
export const prices = computed(() => meta.value?.capabilities.prices ?? false)
export const currency = computed(() => ({ '': '$', USD: '$', EUR: '€', GBP: '£' })[meta.value?.currency ?? ''] ?? meta.value?.currency ?? '$')

/** permalink returns the parameters of a decision's address: its number, and of a live Berth by whose count that is. */
export const permalink = (seq: number): { seq: string; epoch?: string } => ({ seq: String(seq), epoch: meta.value?.capabilities.replay ? undefined : meta.value?.epoch })

/** tick counts what has come: pages ask anew when it grows. */
export const tick = signal(0)

/** take asks for decisions, and adds them to those that are there. */
async function take(query: Query): Promise<DecisionList> {
  const list = await get<DecisionList>('decisions', query)
  if (list.epoch !== meta.peek()?.epoch) throw new APIError(0, anotherLeads) // whose numbers mean other decisions
  oldest = Math.max(oldest, list.first)
  decisions.value = merge(decisions.peek(), list.items)
  return list
}

const anotherLeads = 'Another instance leads now. Going on with it.'
let filling = false

/** fill reads the decisions that are left out between those that are there, the newest first, as far as Berth has them. An event
 * of the stream has 200 at most, and after a pause or an outage the newest alone are read. */
export async function fill(): Promise<void> {
  if (filling) return
  filling = true
  try {
    for (let g = gapIn(decisions.peek()); g && g.before > oldest; g = gapIn(decisions.peek()))
      if ((await take({ since: g.after, before: g.before, limit: 1000 })).items.length === 0) break
  } catch {
    /* the next decision tries again, and says what is left out */
  } finally {
    filling = false
  }
}

/** start begins to follow. It goes on after an outage, a restart or another leader. */
export function start(): void {
  let source: EventSource | undefined
  let again: ReturnType<typeof setTimeout> | undefined
  let wait = 1000
  const retry = (why: string) => {
    trouble.value = why.includes('. ') || /: kubectl /.test(why) ? why : `${why.replace(/\.$/, '')}. Trying again in ${wait / 1000} s.`
    source?.close()
    clearTimeout(again)
    again = setTimeout(begin, wait)
    wait = Math.min(wait * 2, 15000)
  }
  const begin = async () => {
    try {
      const answer = await get<Meta>('meta')
      // One that stands by has no cluster to tell of: what is shown of the leader stays.
      const m: Meta = meta.value && !answer.leading && !answer.capabilities.replay ? { ...meta.value, leading: false, leader: answer.leader } : answer
      if (meta.value && meta.value.epoch !== m.epoch) {
        decisions.value = []
        oldest = 0
      }
      if (m.capabilities.outcomes) {
        run.value = { from: Date.parse(m.from ?? m.now), until: Date.parse(m.now) }
        settle()
      }
      meta.value = m
      if (m.capabilities.replay) {
        if (m.capabilities.outcomes) outcomes.value = (await get<OutcomeList>('outcomes')).items
        await look()
        return
      }
      if (!m.leading) {
        retry(m.leader ? `This instance stands by; ${m.leader} leads. Waiting for it. If berth ui runs with --server, leave that out to ask the leader.` : 'No instance leads yet. Waiting for one.')
        return
      }
      overview.value = await get<Overview>('overview')
      await take({ limit: 500 })
      trouble.value = ''
      tick.value++
      wait = 1000
      follow(m.epoch)
    } catch (e) {
      retry(explain(e))
    }
  }
  // A run stands still: it is asked anew when another time of it is looked at.
  const look = async () => {
    const mine = asked.value
    if (meta.value?.capabilities.outcomes) {
      const [o, d] = await Promise.all([get<Overview>('overview'), get<DecisionList>('decisions', { limit: 1000 })])
      if (mine !== asked.value) return
      overview.value = o
      decisions.value = d.items
    }
    trouble.value = ''
    tick.value++
    wait = 1000
  }
  effect(() => {
    void asked.value // nothing else that a request reads is a reason for another
    untracked(() => meta.value?.capabilities.seek && look().catch(e => retry(explain(e))))
  })
  const follow = (epoch: string) => {
    source?.close()
    const mine = source = new EventSource(base + 'stream')
    // What was decided after the list was read and before the stream began is in neither.
    mine.onopen = () => take({ since: decisions.peek().at(-1)?.seq, limit: 1000 }).catch(e => mine === source && retry(explain(e)))
    source.addEventListener('overview', e => {
      if (paused.value) return
      const o: Overview = JSON.parse((e as MessageEvent).data)
      batch(() => {
        beat()
        overview.value = o
        trouble.value = ''
        tick.value++
      })
    })
    source.addEventListener('decisions', e => {
      if (paused.value) return
      if (!(e as MessageEvent).lastEventId.startsWith(epoch + '.')) return retry(anotherLeads)
      const s: StreamedDecisions = JSON.parse((e as MessageEvent).data)
      decisions.value = merge(decisions.value, s.items)
    })
    source.addEventListener('end', e => retry(JSON.parse((e as MessageEvent).data).error ?? 'Berth has ended the stream.'))
    source.onerror = () => retry('The connection was lost')
  }
  // A page that nobody sees holds no connection: a browser has few for each server, and Berth few streams.
  const seen = () => {
    if (document.visibilityState === 'hidden') {
      source?.close()
      clearTimeout(again)
    } else if (!meta.peek()?.capabilities.replay) void begin()
  }
  document.addEventListener('visibilitychange', seen)
  addEventListener('pagehide', () => source?.close())
  addEventListener('pageshow', e => e.persisted && seen())
  effect(() => {
    if (!paused.value && meta.peek() && !meta.peek()?.capabilities.replay && !trouble.peek()) void begin()
  })
  beat()
  void begin()
}

let beating: ReturnType<typeof setInterval> | undefined

/** beat has the page's clock go on now and then every two seconds, which is how often events come: with them it costs no
 * drawing of its own. */
function beat(): void {
  clearInterval(beating)
  beating = setInterval(() => (now.value = Date.now()), 2000)
  now.value = Date.now()
}

function explain(e: unknown): string {
  if (!(e instanceof APIError)) return String(e)
  if (e.status === 401) return `You aren’t signed in: ${e.message}`
  if (e.status === 403) return `You have no right to see this: ${e.message}`
  if (e.status === 502 || e.status === 504) return `Berth doesn’t answer (${e.message})`
  return e.message
}

export interface Answer<T> {
  data?: T
  error?: string
}

/** useAnswer asks, and asks anew while things change, at most every so many milliseconds. What there was
 * of the same path stays until the new answer is there. */
export function useAnswer<T>(path: string | undefined, query: Query = {}, o: { every?: number } = {}): Answer<T> {
  return useAsked(path, query, () => o.every ?? 2000, () => get<T>(path!, query))
}

/** restOfTick is after how many milliseconds a tick that was passed over is made up for, where no other has come. */
const restOfTick = 2200

/** passing says that an answer like this may be another one a moment later. */
const passing = (e: unknown): boolean => e instanceof APIError && (e.status === 0 || e.status === 429 || e.status >= 500)

/** useAsked asks by ask when path or query change, and then with ticks. A tick alone draws nothing anew. Ticks come while
 * something changes, so one that comes too early, or while an answer is on its way, isn't left for the next: there may be none.
 * asks is how often a tick has to be asked after until all that has changed is there. */
function useAsked<T>(path: string | undefined, query: Query, every: () => number, ask: (before: T | undefined) => Promise<T>, asks = () => 1): Answer<T> {
  const state = useSignal<Answer<T>>({})
  const busy = useRef<{ path: string | undefined; at: string; begun: number; done: boolean }>(undefined)
  const owed = useRef(0), later = useRef<ReturnType<typeof setTimeout>>(undefined)
  const at = path === undefined ? '' : address(path, timed(path, query))
  const again = useRef(ask)
  again.current = ask
  const makeUp = () => {
    clearTimeout(later.current)
    if (owed.current > 0) later.current = setTimeout(() => paused.peek() || trouble.peek() || look(), restOfTick)
  }
  const look = () => {
    if (path === undefined) {
      busy.current = undefined // what was asked for before is asked for anew
      if (state.value.data || state.value.error) state.value = {}
      return
    }
    const b = busy.current
    // What is due a moment after a tick isn't left for the next.
    if (b?.at === at && (!b.done || Date.now() - b.begun < every() - 200)) return makeUp()
    if (b?.path !== path) state.value = {}
    const mine = { path, at, begun: Date.now(), done: false }
    busy.current = mine
    owed.current--
    const answered = (a: Answer<T>, e?: unknown) => {
      mine.done = true
      if (busy.current !== mine) return
      state.value = a
      if (passing(e)) owed.current = Math.max(owed.current, 1)
      makeUp()
    }
    again.current(b?.at === at ? state.value.data : undefined).then(data => answered({ data }), e => answered({ data: state.value.data, error: explain(e) }, e))
  }
  useEffect(() => {
    const stop = effect(() => {
      void tick.value // nothing else that is read is a reason to ask
      untracked(() => {
        const known = busy.current?.at === at
        if (known && meta.value?.capabilities.replay) return // a run stands still
        owed.current = known ? asks() : 1
        look()
      })
    })
    return () => {
      stop()
      clearTimeout(later.current)
      owed.current = 0
    }
  }, [at])
  useEffect(() => () => void (busy.current = undefined), []) // an answer that comes later is nobody's
  return state.value
}

/** rowsOfPage is how many rows of a list are asked for at a time. Parsing more makes a page stutter. */
const rowsOfPage = 1000

export interface List<R> { items: R[]; continue?: string }

/** ticksOfRound is in how many ticks all pages of a list are read anew, at least one with each. */
const ticksOfRound = 5
/** longRest is after how many milliseconds without an answer a list is read anew as a whole, as when nobody saw the page. */
const longRest = 15000

/** Round is how far the pages of a list have been read anew: how many rows at its beginning, where it goes on, how many rows
 * there are, and when the last page came. */
export interface Round { done: number; next?: string; rows: number; at: number }

/** usePages is useAnswer for a list of which all pages are wanted. They are read one after the other, and then anew, some
 * with each tick. key is a row's name, by which Berth sorts the list. */
export function usePages<R, T extends List<R>>(path: string, key: (row: R) => string, query: Query = {}, every = 2000): Answer<T> {
  const round = useRef<Round>({ done: 0, rows: 0, at: 0 })
  const limit = inReport ? undefined : rowsOfPage // a report has no pages
  const long = () => round.current.rows > rowsOfPage
  // The pages of a long list are read without a pause, so that a round takes ticksOfRound. Pages after the first may be of an
  // answer of before, so the second round has all that has changed.
  return useAsked<T>(path, query, () => (long() ? 0 : every), async before => {
    const [list, at] = await readOn<R, T>(before, round.current, next => get<T>(path, { limit, ...query, continue: next }), key, Date.now)
    round.current = at
    return list
  }, () => (long() ? 2 * ticksOfRound : 1))
}

/** readOn reads the pages of a list that are due: all of them without a list, and after a long rest. read asks for the page
 * that a continue names. */
export async function readOn<R, T extends List<R>>(before: T | undefined, round: Round, read: (next?: string) => Promise<T>, key: (row: R) => string, now: () => number): Promise<[T, Round]> {
  const whole = !before || now() - round.at > longRest
  let { done, next } = whole ? { done: 0, next: undefined } : round
  let items = before?.items ?? []
  let most = whole ? Infinity : Math.max(1, Math.ceil(items.length / rowsOfPage / ticksOfRound))
  for (;;) {
    const page = await read(next)
    items = renewed(items, done, page, key)
    done += page.items.length
    next = page.continue
    if (next && --most > 0) continue
    return [{ ...page, items, continue: undefined }, { done: next ? done : 0, next, rows: items.length, at: now() }]
  }
}

/** renewed returns a sorted list with a page of it read anew. The first rows, done of them, are this round's; those after the
 * page's last row stay as they are until their own page comes. A row that says what it said stays the same object,
 * and so does the list if all of them do. Pure. */
export function renewed<R>(have: R[], done: number, page: List<R>, key: (row: R) => string): R[] {
  const last = page.items.at(-1)
  const out = have.slice(0, done)
  let i = done
  for (const row of page.items) {
    const k = key(row)
    while (i < have.length && key(have[i]!) < k) i++
    out.push(i < have.length && same(have[i], row) ? have[i]! : row)
  }
  if (page.continue && last !== undefined) out.push(...have.slice(done).filter(r => key(r) > key(last)))
  return out.length === have.length && out.every((r, j) => r === have[j]) ? have : out
}

/** same says that two answers say the same. Pure. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const x = a as Record<string, unknown>, y = b as Record<string, unknown>
  let n = 0
  for (const k in x) {
    if (!same(x[k], y[k])) return false
    n++
  }
  for (const _ in y) n--
  return n === 0
}
