import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { configJsonSchema } from '../packages/gateway/src/config/schema.ts'

// Run with --conditions=toolgate-source and then oxfmt, after a change of packages/gateway/src/config/schema; a test says when it is due.
const file = path.join(import.meta.dirname, '../packages/gateway/toolgate.schema.json')
writeFileSync(file, configJsonSchema())
console.log(`wrote ${path.relative(process.cwd(), file)}`)
