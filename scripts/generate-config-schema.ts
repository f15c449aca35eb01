import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { testsJsonSchema } from '../packages/gateway/src/admin/change/test-schema.ts'
import { configJsonSchema } from '../packages/gateway/src/config/sections.ts'

// Run with --conditions=toolgate-source and then oxfmt, after a change of packages/gateway/src/config/sections.ts or change/test-schema.ts;
// a test says when it is due.
const folder = path.join(import.meta.dirname, '../packages/gateway')
for (const [name, text] of [
  ['toolgate.schema.json', configJsonSchema()],
  ['toolgate-tests.schema.json', testsJsonSchema()],
] as const) {
  writeFileSync(path.join(folder, name), text)
  console.log(`wrote packages/gateway/${name}`)
}
