// Writes packages/gateway/openapi.json: the rows of openapi/operations.ts, with the types of the gateway's wire.ts.
//
//   node --conditions=toolgate-source scripts/generate-openapi.js [--check]
//
// Run it after a change of either, and then oxfmt. `--check` writes nothing; it fails if the file is stale or invalid.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { createGenerator } from 'ts-json-schema-generator'
import { toDocument } from './openapi/document.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const FILE = path.join(ROOT, 'packages/gateway/openapi.json')

const document = JSON.parse(JSON.stringify(toDocument(readTypes())))
const { valid, errors } = await new Validator().validate(structuredClone(document))
if (!valid) fail(`not a valid OpenAPI document: ${JSON.stringify(errors)}`)
if (!process.argv.includes('--check')) writeFileSync(FILE, `${JSON.stringify(document, undefined, 2)}\n`)
else if (!isDeepStrictEqual(JSON.parse(readFileSync(FILE, 'utf8')), document)) fail('openapi.json is stale: run me')

/** Returns the types of `wire.ts` as JSON Schemas, by name. */
function readTypes() {
  const generator = createGenerator({
    path: path.join(ROOT, 'packages/gateway/src/model/rows.ts'),
    tsconfig: path.join(ROOT, 'tsconfig.check.json'),
    type: '*',
    expose: 'export',
    // The compiler checks the types; answers may have more fields one day.
    skipTypeCheck: true,
    additionalProperties: true,
  })
  const { definitions } = generator.createSchema('*')
  const text = JSON.stringify(definitions)
    .replaceAll('#/definitions/', '#/components/schemas/')
    .replaceAll(/\s*\{@link\s+(\w+)\s*\}\s*/g, ' $1')
  return JSON.parse(text)
}

function fail(message) {
  console.error(`scripts/generate-openapi.js: ${message}`)
  process.exit(1)
}
