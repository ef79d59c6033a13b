// Writes built.sums: what the page was built from, and what came of it, so that Go tells without Node whether dist is what
// src builds (TestThePageIsBuilt).
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const ui = new URL('.', import.meta.url)
const folders = ['dist', 'public', 'src'].flatMap(f => readdirSync(new URL(f, ui), { recursive: true, withFileTypes: true })
  .filter(e => e.isFile() && !e.name.endsWith('.test.ts')).map(e => `${e.parentPath}/${e.name}`.slice(ui.pathname.length)))
const files = [...folders, '../edge/api/schema.json', 'index.html', 'package.json', 'package-lock.json', 'sums.mjs', 'tsconfig.json', 'types.mjs', 'vite.config.ts']
const line = f => `${createHash('sha256').update(readFileSync(new URL(f, ui))).digest('hex')}  ${f}\n`
writeFileSync(new URL('built.sums', ui), files.sort().map(line).join(''))
