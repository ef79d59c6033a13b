import { effect, signal } from '@preact/signals'

// What a person chooses for this browser. A page from a file, or in a browser that keeps nothing,
// forgets it.

function kept(key: string, otherwise: string) {
  let first = otherwise
  try {
    first = localStorage.getItem('berth.' + key) ?? otherwise
  } catch {
    /* nothing is kept here */
  }
  const s = signal(first)
  effect(() => {
    try {
      localStorage.setItem('berth.' + key, s.value)
    } catch {
      /* nor here */
    }
  })
  return s
}

/** theme is "light", "dark", or "" for the system's. */
export const theme = kept('theme', '')
export const utc = kept('utc', 'true')
export const paused = signal(false)
/** now follows the clock, to the second, for ages. Where the data has a time of its own, that counts. */
export const now = signal(Date.now())

/** printing says that the page is being put on paper, where nothing can be scrolled. */
export const printing = signal(false)

/** narrow says that the page has the width of a phone. */
export const narrow = signal(false)

/** systemDark says whether the system's colours are dark. */
export const systemDark = signal(false)

/** followTheme sets the colours that were chosen, now and whenever that changes. */
export function followTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)')
  systemDark.value = system.matches
  system.addEventListener('change', e => (systemDark.value = e.matches))
  const phone = matchMedia('screen and (max-width: 700px)')
  narrow.value = phone.matches
  phone.addEventListener('change', e => (narrow.value = e.matches))
  const paper = matchMedia('print')
  printing.value = paper.matches
  paper.addEventListener('change', e => (printing.value = e.matches))
  addEventListener('beforeprint', () => (printing.value = true))
  addEventListener('afterprint', () => (printing.value = false))
  effect(() => {
    const colours = printing.value ? 'light' : theme.value
    if (colours) document.documentElement.dataset.theme = colours
    else delete document.documentElement.dataset.theme
  })
}

/** nextTheme goes round: the system's, light, dark. */
export const nextTheme = () => (theme.value = { '': 'light', light: 'dark', dark: '' }[theme.value] ?? '')
