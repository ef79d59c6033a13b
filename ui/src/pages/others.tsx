import { clockNow, useAnswer } from '../api'
import { age, count, percent, plural } from '../format'
import { Empty, Meter, Panel, PlainTable, Stat, Tag } from '../parts/basics'
import { Table, type Column } from '../parts/table'
import { href } from '../route'
import type { DeviceList, DevicePool, PodGroup, PodGroupList } from '../types'

const groupColumns: Column<PodGroup>[] = [
  { key: 'name', label: 'pod group', show: g => `${g.namespace}/${g.name}`, by: g => `${g.namespace}/${g.name}`, width: 'minmax(200px, 1.5fr)' },
  { key: 'policy', label: 'policy', show: g => g.policy ?? '', by: g => g.policy ?? '' },
  { key: 'placed', label: 'placed', num: true, show: g => count(g.placed), by: g => g.placed },
  { key: 'pending', label: 'pending', num: true, show: g => count(g.pending), by: g => g.pending },
  { key: 'min', label: 'at least', num: true, show: g => (g.minCount ? count(g.minCount) : ''), by: g => g.minCount ?? 0 },
  { key: 'share', label: 'complete', show: g => <Meter share={g.minCount ? g.placed / g.minCount : g.placed / Math.max(1, g.placed + g.pending)} tone="good-fill" />, width: '140px' },
  { key: 'topology', label: 'together in', show: g => g.topology ?? '', by: g => g.topology ?? '' },
  { key: 'queue', label: 'queue', show: g => (g.queue ? `${g.queue}${g.attempts ? `, ${plural(g.attempts, 'attempt')}` : ''}` : ''), by: g => g.queue ?? '' },
  { key: 'age', label: 'age', num: true, show: g => age(g.created, clockNow.value), by: g => (g.created ? -Date.parse(g.created) : NaN) },
  { key: 'message', label: 'message', show: g => g.message ?? '', width: 'minmax(200px, 2fr)' },
]

/** PodGroupsPage is the pod groups, and how complete they are. */
export function PodGroupsPage() {
  const { data, error } = useAnswer<PodGroupList>('podgroups', {}, { pages: true, every: 4000 })
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  return <Panel bare>{data.items.length === 0 ? <Empty title="There is no pod group" /> : <Table label="Pod groups" columns={groupColumns} rows={data.items} id={g => `${g.namespace}/${g.name}`} first="-pending" />}</Panel>
}

const poolColumns: Column<DevicePool>[] = [
  { key: 'driver', label: 'driver', show: p => p.driver, by: p => p.driver, width: 'minmax(160px, 1fr)' },
  { key: 'pool', label: 'pool', show: p => p.pool, by: p => p.pool, width: 'minmax(160px, 1fr)' },
  { key: 'node', label: 'node', show: p => (p.node ? <a href={href('devices', { node: p.node })}>{p.node}</a> : 'several'), by: p => p.node ?? '', width: 'minmax(160px, 1fr)' },
  { key: 'devices', label: 'devices', num: true, show: p => count(p.devices), by: p => p.devices },
  { key: 'allocated', label: 'allocated', num: true, show: p => count(p.allocated), by: p => p.allocated },
  { key: 'share', label: 'in use', show: p => <Meter share={p.allocated / Math.max(1, p.devices)} tone="gpu" />, by: p => p.allocated / Math.max(1, p.devices), width: '140px' },
]

/** DevicesPage is the pools of devices, and the claims for them. */
export function DevicesPage() {
  const { data, error } = useAnswer<DeviceList>('devices', {}, { every: 4000 })
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  const all = data.items.reduce((n, p) => n + p.devices, 0), taken = data.items.reduce((n, p) => n + p.allocated, 0)
  return (
    <>
      <div class="stats"><Stat label="Devices" value={count(all)} note={plural(data.items.length, 'pool')} /><Stat label="Allocated" value={percent(all ? taken / all : undefined)} note={count(taken)} /><Stat label="Claims" value={count(data.claims.length)} note={`${count(data.claims.filter(c => !c.allocated).length)} without devices`} /></div>
      <Panel title="Pools" bare>{data.items.length === 0 ? <Empty title="No driver has published devices" /> : <Table label="Pools of devices" columns={poolColumns} rows={data.items} id={p => `${p.driver}/${p.pool}`} first="driver" />}</Panel>
      <Panel title="Claims">{data.claims.length === 0 ? <Empty title="There is no claim" /> : <PlainTable caption="Claims" head={['claim', 'devices', 'pods']}
        rows={data.claims.slice(0, 300).map(c => [`${c.namespace}/${c.name}`, c.allocated ? c.devices?.join(', ') : <Tag tone="wait">not allocated</Tag>, c.pods?.map(p => <><a href={href('devices', { pod: `${c.namespace}/${p}` })}>{p}</a> </>)])} />}
        {data.claims.length > 300 && <p class="soft">and {count(data.claims.length - 300)} more</p>}</Panel>
    </>
  )
}
