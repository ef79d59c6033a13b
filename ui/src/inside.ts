// The answers of a report: as the API answers, from what the report has inside. Pure.

type Row = Record<string, unknown>
type Filters = Record<string, string | number | string[] | undefined>

/** fields are the parameters that are the name of a field, whose value they ask for. */
const fields = new Set(['kind', 'pod', 'node', 'group', 'namespace', 'reason', 'plugin', 'zone', 'state'])

/** answerInside returns the answer to a path, of a list the rows that match; undefined when the report hasn't got it. */
export function answerInside(inside: Record<string, unknown>, path: string, query: Filters = {}): unknown {
  const answer = inside[path] as (Row & { items?: Row[] }) | undefined
  if (!answer) {
    const [kind, seq] = path.split('/')
    return kind === 'decisions' ? (inside.decisions as { items: Row[] } | undefined)?.items.find(d => String(d.seq) === seq) : undefined
  }
  if (!Array.isArray(answer.items)) return answer
  const items = answer.items.filter(row => Object.entries(query).every(([k, v]) => matches(row, k, v)))
  const limit = Number(query.limit ?? Infinity)
  // Of a list that is cut, how many rows match isn't known, but of those that wait: they come first.
  const left = Number(answer.total ?? 0) - answer.items.length
  const waiting = path === 'pods' && query.state === 'pending' && left > 0 && items.length === answer.items.length
  const total = waiting ? (inside.overview as { pods: { pending: number } }).pods.pending : items.length < answer.items.length ? items.length : answer.total
  return { ...answer, items: path === 'decisions' ? items.slice(-Math.min(limit, items.length || 1)) : items.slice(0, limit), total, continue: undefined }
}

function matches(row: Row, name: string, value: string | number | string[] | undefined): boolean {
  if (value === undefined || value === '') return true
  if (name === 'q') return `${row.namespace ?? ''}/${row.name ?? ''}`.includes(String(value))
  if (name === 'state' && value === 'pending') return row.state !== 'Placed'
  return !fields.has(name) || (Array.isArray(value) ? value.includes(String(row[name])) : String(row[name] ?? '') === String(value))
}
