import { currency, useAnswer } from '../api'
import { clock, count, money, percent, plural } from '../format'
import { keeper, stays, words } from '../names'
import { Empty, Panel, PlainTable, Stat } from '../parts/basics'
import { href } from '../route'
import { clockNow } from '../api'
import { utc } from '../settings'
import type { Money, NodesOfReason } from '../types'

/** Bars are amounts beside each other, longest first, with their numbers. */
function Bars({ of, rows }: { of: string; rows: { label: preact.ComponentChildren; n: number; note: string; tone: string }[] }) {
  const most = Math.max(...rows.map(r => r.n), 1e-9)
  return <PlainTable class="amounts" head={[of, 'cost', 'share of the most', 'nodes']} nums={[1]} caption={`Cost by ${of}`}
    rows={rows.map(r => [r.label, r.n ? money(r.n, currency.value) : '–', <svg class="amount" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={(r.n / most) * 100} height="10" rx="1" fill={`var(--${r.tone})`} /></svg>, <span class="soft">{r.note.split(', ').map((x, i, all) => <><span class="nowrap">{x}{i < all.length - 1 ? ',' : ''}</span> </>)}</span>])} />
}

/** MoneyPage is what nodes cost: by group, and by why they stay. */
export function MoneyPage() {
  const { data: m, error } = useAnswer<Money>('money', {}, { every: 5000 })
  if (error && !m) return <p class="bad">{error}</p>
  if (!m) return <p class="loading">Loading…</p>
  const c = (n: number) => money(n, currency.value)
  return (
    <>
      <div class="stats">
        <Stat label="All nodes" value={c(m.price)} note={m.unpriced ? `${plural(m.unpriced, 'node')} without a price` : ''} />
        <Stat label="Could go" value={c(m.removable)} note={m.price > 0 ? percent(m.removable / m.price) : ''} tone={m.removable > 0 ? 'wait' : ''} />
        <Stat label="On their way out" value={c(m.leaving)} />
        <Stat label="Launching" value={c(m.launching)} />
        <Bought of={m.bought} />
      </div>
      <div class="cols">
        <Panel title="By node group">{m.groups.length === 0 ? <Empty title="No node has a price">Give prices with --node-prices, or by the provider.</Empty>
          : <Bars of="node group" rows={m.groups.map(g => ({ label: g.group ? <a href={href('groups', { g: g.group })}>{g.group}</a> : 'in no group', n: g.price, tone: 'cpu', note: `${plural(g.nodes, 'node')}${g.removable ? `, ${c(g.removable)} could go` : ''}` }))} />}</Panel>
        <Panel title="By why nodes stay">{m.reasons.length === 0 ? <Empty title="No plan has looked yet" />
          : <Bars of="why" rows={m.reasons.map(r => ({ label: reason(r), n: r.price ?? 0, tone: r.state === 'Stays' ? 'good-fill' : r.state === 'Leaving' ? 'warn-fill' : 'wait-fill', note: plural(r.nodes, 'node') }))} />}</Panel>
      </div>
      <Panel title="Pods that keep nodes which could otherwise go">
        {m.blockers.length === 0 ? <Empty title="No pod keeps a node">No node stays only because one of its pods can’t be moved.</Empty>
          : <PlainTable caption="Blockers" head={['pod', 'node', 'group', 'why the pod keeps it', 'cost of the node']} nums={[4]} rows={m.blockers.map(b => [<a href={href('money', { pod: b.pod })}>{b.pod}</a>, <a href={href('money', { node: b.node })}>{b.node}</a>, b.group, keeper(b.reason), b.price ? c(b.price) : '–'])} />}
        {(m.hiddenBlockers ?? 0) > 0 && <p class="soft">and {count(m.hiddenBlockers)} in namespaces that you may not read</p>}
      </Panel>
    </>
  )
}

/** Bought compares purchases with their alternatives, and with the least that any purchase for the same pods costs. */
function Bought({ of: b }: { of: Money['bought'] }) {
  const c = (n: number) => money(n, currency.value)
  if (!b) return <Stat label="Bought" value="–" note="no order that had an alternative is among the decisions that are kept, but for those that failed" />
  return (
    <>
      {b.orders > 0 && <Stat label="Bought" value={c(b.chosen)} note={`${plural(b.orders, 'order')} that had an alternative: the next best would have cost ${c(b.next)} or more, the dearest ${c(b.dearest)} or more; since ${clock(b.since, utc.value === 'true', clockNow.value)}`} />}
      {b.bounded
        ? <Stat label="Bought above the lower bound" value={above(b.boundedChosen! / b.lowerBound! - 1)} note={`${c(b.boundedChosen!)}, and no purchase for these pods costs less than ${c(b.lowerBound!)}; ${plural(b.bounded, 'order')}`} />
        : <Stat label="Bought above the lower bound" value="–" note="needs --expander=cost, which also proves what these pods cost at least" />}
    </>
  )
}

/** above is by what share something is more than the least. */
const above = (share: number) => (share < 0.0005 ? '0 %' : share < 0.1 ? `${(share * 100).toFixed(1)} %` : percent(share))

const reason = (r: NodesOfReason) => <>{r.state === 'Stays' ? stays(r.reason) : r.state === 'Candidate' ? 'could go' : r.state === 'Leaving' ? `leaving${r.reason ? ': ' + words(r.reason) : ''}` : 'not looked at yet'}
  {r.node && <span class="soft"> such as <a href={href('money', { node: r.node })}>{r.node}</a></span>}</>
