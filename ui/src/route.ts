import { computed, signal } from '@preact/signals'

// The URL is the state: "#/nodes?group=spot&node=n1". It is behind the hash, so that the same page
// works below any prefix of a proxy and from a file.

export interface Route {
  page: string
  params: URLSearchParams
}

/** parse reads a hash. */
export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  return { page: path, params: new URLSearchParams(query) }
}

/** carried are the parameters that hold for all pages: the time of a run, and the runs beside each other. */
const carried = ['t', 'with']

/** href writes a hash; parameters without a value are left out. */
export function href(page: string, params: Record<string, string | undefined> | URLSearchParams = {}): string {
  const query = new URLSearchParams()
  if (!(params instanceof URLSearchParams)) for (const k of carried) if (param(k)) query.set(k, param(k))
  const entries = params instanceof URLSearchParams ? params.entries() : Object.entries(params)
  for (const [k, v] of entries) if (v) query.set(k, v)
  const q = query.toString()
  return `#/${page}${q ? '?' + q : ''}`
}

const hash = signal(typeof location === 'undefined' ? '' : location.hash)
if (typeof window !== 'undefined') window.addEventListener('hashchange', () => (hash.value = location.hash))

export const route = computed(() => parse(hash.value))

/** param returns a parameter of the URL. */
export const param = (name: string): string => route.value.params.get(name) ?? ''

/** go changes parameters of the URL and stays on its page. Typing in a field replaces the entry of
 * the history, what opens or closes something adds one. */
export function go(change: Record<string, string | undefined>, replace = false): void {
  const params = new URLSearchParams(route.value.params)
  for (const [k, v] of Object.entries(change)) v ? params.set(k, v) : params.delete(k)
  to(href(route.value.page, params), replace)
}

/** to goes to a hash. */
export function to(target: string, replace = false): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', target)
  hash.value = target
}
