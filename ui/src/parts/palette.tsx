import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { get, type Query } from '../api'
import { href, to } from '../route'
import type { GroupList, NodeList, PodList } from '../types'

interface Entry { name: string; kind: string; href: string }

/** Palette finds a page, a node, a group or a pod by a part of its name. */
export function Palette({ pages, close }: { pages: [string, string][]; close: () => void }) {
  const typed = useSignal(''), at = useSignal(0), found = useSignal<Entry[]>([])
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    field.current?.focus()
    return () => before?.isConnected && before.focus()
  }, [])
  useEffect(() => {
    const q = typed.value.trim()
    at.value = 0
    if (q.length < 2) {
      found.value = []
      return
    }
    const abort = new AbortController()
    const wait = setTimeout(async () => {
      const ask = async <T,>(path: string, query: Query, then: (t: T) => Entry[]): Promise<Entry[]> => {
        try {
          return then(await get<T>(path, query, abort.signal))
        } catch {
          return []
        }
      }
      const parts = await Promise.all([
        ask<NodeList>('nodes', { q, limit: 8 }, l => l.items.map(n => ({ name: n.name, kind: 'node', href: href('nodes', { node: n.name }) }))),
        ask<GroupList>('groups', {}, l => l.items.filter(g => g.name.includes(q)).slice(0, 8).map(g => ({ name: g.name, kind: 'group', href: href('groups', { g: g.name }) }))),
        ask<PodList>('pods', { q, limit: 8 }, l => l.items.map(p => ({ name: `${p.namespace}/${p.name}`, kind: 'pod', href: href('pending', { pod: `${p.namespace}/${p.name}` }) }))),
      ])
      if (!abort.signal.aborted) found.value = parts.flat()
    }, 150)
    return () => {
      abort.abort()
      clearTimeout(wait)
    }
  }, [typed.value])
  const entries = useMemo(() => {
    const q = typed.value.toLowerCase()
    return [...pages.filter(([, name]) => name.toLowerCase().includes(q)).map(([page, name]) => ({ name, kind: 'page', href: href(page) })), ...found.value]
  }, [typed.value, found.value])
  const keys = (e: KeyboardEvent) => {
    if (e.key === 'Escape') close()
    else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') at.value = Math.max(0, Math.min(entries.length - 1, at.value + (e.key === 'ArrowDown' ? 1 : -1)))
    else if (e.key === 'Enter' && entries[at.value]) {
      to(entries[at.value]!.href)
      close()
    } else return
    e.preventDefault()
    e.stopPropagation()
  }
  return (
    <>
      <div class="shade" onClick={close} />
      <div class="panel palette" role="dialog" aria-modal="true" aria-label="Go to" onKeyDown={keys}>
        <input ref={field} type="text" placeholder="Go to a page, node, group or pod" aria-label="Go to a page, node, group or pod" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={entries.length ? `found-${at.value}` : undefined} value={typed.value} onInput={e => (typed.value = e.currentTarget.value)} />
        <ul role="listbox" id="found" aria-label="Found">{entries.map((x, i) => <li role="option" id={`found-${i}`} aria-selected={i === at.value}><a href={x.href} onClick={close} tabIndex={-1}>{x.name}<span class="soft">{x.kind}</span></a></li>)}</ul>
      </div>
    </>
  )
}
