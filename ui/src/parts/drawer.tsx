import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Trouble } from './basics'

/** Drawer shows one thing beside the page. The focus is in it until it closes, and then where it was. */
export function Drawer({ title, close, children }: { title: ComponentChildren; close: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    box.current?.focus()
    return () => before?.isConnected && before.focus()
  }, [])
  const keys = (e: KeyboardEvent) => {
    if (e.key === 'Escape') {
      e.stopPropagation()
      close()
    }
    if (e.key !== 'Tab') return
    const inside = [...box.current!.querySelectorAll<HTMLElement>('a[href],button,input,select,summary,[tabindex="0"]')].filter(x => x.offsetParent)
    const first = inside[0], last = inside.at(-1)
    if (e.shiftKey && (document.activeElement === first || document.activeElement === box.current)) {
      e.preventDefault()
      last?.focus()
    } else if (!e.shiftKey && document.activeElement === last) {
      e.preventDefault()
      first?.focus()
    }
  }
  return (
    <>
      <div class="shade" onClick={close} />
      <div class="drawer" role="dialog" aria-modal="true" aria-labelledby="drawer-title" ref={box} tabIndex={-1} onKeyDown={keys}>
        <header><h2 id="drawer-title">{title}</h2><button class="tool" onClick={close}>Close <kbd>Esc</kbd></button></header>
        <Trouble />
        <div class="content">{children}</div>
      </div>
    </>
  )
}
