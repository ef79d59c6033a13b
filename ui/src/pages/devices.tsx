import { useAnswer } from '../api'
import { count, percent, plural } from '../format'
import { Empty, Meter, Panel, PlainTable, Stat, Tag } from '../parts/basics'
import { Table, type Column } from '../parts/table'
import { href } from '../route'
import type { DeviceList, DevicePool } from '../types'

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
  const { data, error } = useAnswer<DeviceList>('devices', { limit: 5000 }, { every: 4000 })
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  const all = data.items.reduce((n, p) => n + p.devices, 0), taken = data.items.reduce((n, p) => n + p.allocated, 0)
  const without = data.claims.filter(c => !c.allocated).length
  return (
    <>
      <div class="stats"><Stat label="Devices" value={count(all)} note={plural(data.items.length, 'pool')} /><Stat label="Allocated" value={percent(all ? taken / all : undefined)} note={`${count(taken)} of ${count(all)}`} /><Stat label="Claims" value={count(data.total)} note={`${count(without)}${data.claims.length < data.total ? ` of the first ${count(data.claims.length)}` : ''} without devices`} /></div>
      <Panel title="Pools" bare>{data.items.length === 0 ? <Empty title="No driver has published devices" /> : <Table label="Pools of devices" columns={poolColumns} rows={data.items} id={p => `${p.driver}/${p.pool}`} first="driver" />}</Panel>
      <Panel title="Claims">{data.claims.length === 0 ? <Empty title="There is no claim" /> : <PlainTable caption="Claims" head={['claim', 'devices', 'pods']}
        rows={data.claims.slice(0, 300).map(c => [`${c.namespace}/${c.name}`, c.allocated ? c.devices?.join(', ') : <Tag tone="wait">not allocated</Tag>, c.pods?.map(p => <><a href={href('devices', { pod: `${c.namespace}/${p}` })}>{p}</a> </>)])} />}
        {data.total - (data.hidden ?? 0) > Math.min(300, data.claims.length) && <p class="soft">and {count(data.total - (data.hidden ?? 0) - Math.min(300, data.claims.length))} more</p>}
        {(data.hidden ?? 0) > 0 && <p class="soft">and {count(data.hidden)} in namespaces that you may not read</p>}</Panel>
    </>
  )
}
