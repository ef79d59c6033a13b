import 'uplot/dist/uPlot.min.css'
import './theme.css'
import { useSignal } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { clockNow, meta, overview, start, trouble } from './api'
import { clock, count } from './format'
import { Trouble, WayOut } from './parts/basics'
import { Palette } from './parts/palette'
import { DecisionDrawer, DecisionsPage } from './pages/decisions'
import { GroupDrawer, GroupsPage } from './pages/groups'
import { MoneyPage } from './pages/money'
import { NodeDrawer, NodesPage } from './pages/nodes'
import { Now } from './pages/now'
import { DevicesPage } from './pages/devices'
import { PendingPage } from './pages/pending'
import { PodDrawer } from './pages/pod'
import { PodGroupDrawer, PodGroupsPage } from './pages/podgroups'
import { RunPage } from './pages/run'
import { ShadowPage } from './pages/shadow'
import { Scrubber } from './parts/scrubber'
import { href, param, route, to } from './route'
import { followTheme, nextTheme, now, paused, theme, utc } from './settings'

interface Page {
  id: string
  name: string
  show: () => preact.JSX.Element
  if?: () => boolean
  count?: () => number | undefined
}

const can = () => meta.value?.capabilities

/** cluster says that there is a cluster to look at, and not the report of a shadow alone. */
const cluster = () => meta.value?.fileKind !== 'report' || (can()?.outcomes ?? false)

const pages: Page[] = [
  { id: 'run', name: 'Run', show: RunPage, if: () => can()?.outcomes ?? false },
  { id: 'now', name: 'Now', show: Now, if: cluster },
  { id: 'pending', name: 'Pending', show: PendingPage, if: cluster, count: () => overview.value?.pods.pending },
  { id: 'nodes', name: 'Nodes', show: NodesPage, if: cluster, count: () => overview.value?.nodes.total },
  { id: 'groups', name: 'Node groups', show: GroupsPage, if: () => can()?.autoscaling ?? false },
  { id: 'podgroups', name: 'Pod groups', show: PodGroupsPage, if: () => can()?.podGroups ?? false },
  { id: 'devices', name: 'Devices', show: DevicesPage, if: () => can()?.devices ?? false },
  { id: 'decisions', name: 'Decisions', show: DecisionsPage, if: cluster },
  { id: 'money', name: 'Money', show: MoneyPage, if: () => can()?.prices ?? false },
  { id: 'shadow', name: 'Shadow', show: ShadowPage, if: () => can()?.shadow ?? false },
]

const themeNames: Record<string, string> = { '': 'system', light: 'light', dark: 'dark' }

function App() {
  const asking = useSignal(false)
  const here = pages.filter(p => p.if?.() ?? true)
  const page = route.value.page === '' ? here[0] : here.find(p => p.id === route.value.page)
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const el = e.target as HTMLElement
      if (/INPUT|SELECT|TEXTAREA/.test(el.tagName) || e.metaKey || e.ctrlKey || e.altKey) return
      if (e.key === '/') {
        e.preventDefault()
        asking.value = true
      } else if (/^[1-9]$/.test(e.key) && here[Number(e.key) - 1] && !document.querySelector('[role=dialog]')) to(href(here[Number(e.key) - 1]!.id))
    }
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  })
  useEffect(() => {
    document.title = `${page?.name ?? 'Berth'} · Berth`
  }, [page?.name])
  useEffect(() => { // of more pages than a phone has room for
    const reveal = () => document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    reveal()
    addEventListener('resize', reveal) // also when it is turned
    return () => removeEventListener('resize', reveal)
  }, [page?.id, here.length])
  const open = ['pod', 'node', 'g', 'pg', 'seq'].find(k => param(k))
  return (
    <>
      <a class="skip" href="#main" onClick={e => { e.preventDefault(); document.getElementById('main')?.focus() }}>Skip to the content</a>
      <svg class="hidden" aria-hidden="true"><pattern id="launching" width="3" height="10" patternUnits="userSpaceOnUse"><rect width="1.8" height="10" fill="var(--wait-fill)" /></pattern></svg>
      <Bar ask={() => (asking.value = true)} />
      <nav class="tabs" aria-label="Pages">{here.map(p => <a href={href(p.id)} aria-current={p === page ? 'page' : undefined}>{p.name}{p.count?.() !== undefined && <span class="n">{count(p.count())}</span>}</a>)}</nav>
      <Trouble />
      {paused.value && <div class="banner" role="status">Paused at {clock(overview.value?.at, utc.value === 'true', now.value)}.</div>}
      {can()?.seek && <Scrubber />}
      <main id="main" tabIndex={-1}>
        <h1 class="hidden">{!meta.value ? 'Berth' : page?.name ?? 'No such page'}</h1>
        {meta.value ? (page ? <page.show /> : <p class="loading">There is no such page here. Some need what a cluster may not have: Money needs prices, Node groups a provider, Devices drivers. <a href="#/">Go to the first one.</a></p>) : trouble.value ? <WayOut /> : <p class="loading">Loading…</p>}
      </main>
      {open === 'pod' && <PodDrawer key={'p' + param('pod')} />}
      {open === 'node' && <NodeDrawer key={'n' + param('node')} />}
      {open === 'g' && <GroupDrawer key={'g' + param('g')} />}
      {open === 'pg' && <PodGroupDrawer key={'pg' + param('pg')} />}
      {open === 'seq' && <DecisionDrawer key={'s' + param('epoch') + '.' + param('seq')} />}
      {asking.value && <Palette pages={here.map(p => [p.id, p.name])} close={() => (asking.value = false)} />}
    </>
  )
}

/** icon is the address of the page's icon, which a report has inside. */
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')!.href

function Bar({ ask }: { ask: () => void }) {
  const m = meta.value
  return (
    <header class="bar">
      <a class="brand" href="#/"><img src={icon} alt="" />Berth</a>
      {m && <div class="facts">
        <span>{m.mode}{m.file ? ` · ${m.file}` : ''}</span><span>{m.version}</span>{m.rules && <span>rules of Kubernetes {m.rules}</span>}
        {m.leader && <span>leader {m.leader}</span>}
        {m.capabilities.replay ? <span>at {clock(clockNow.value, utc.value === 'true', clockNow.value)}</span> : overview.value && <span>{clock(overview.value.at, utc.value === 'true', now.value)}</span>}
        {!m.viewer.allNamespaces && <span>names of other namespaces are hidden</span>}
      </div>}
      <div class="tools">
        <button class="tool" onClick={ask}>Go to… <kbd>/</kbd></button>
        {!m?.capabilities.replay && <button class="tool" aria-pressed={paused.value} onClick={() => (paused.value = !paused.value)}>{paused.value ? 'Resume' : 'Pause'}</button>}
        <button class="tool" onClick={() => (utc.value = utc.value === 'true' ? 'false' : 'true')} aria-label={`Times in ${utc.value === 'true' ? 'UTC' : 'local time'}; change`}>{utc.value === 'true' ? 'UTC' : 'Local'}</button>
        <button class="tool" onClick={nextTheme} aria-label={`Theme: ${themeNames[theme.value]}; change`}><span class="kind">Theme: </span><span>{themeNames[theme.value]}</span></button>
      </div>
    </header>
  )
}

const root = document.getElementById('app')!
root.textContent = ''
followTheme()
render(<App />, root)
start()
