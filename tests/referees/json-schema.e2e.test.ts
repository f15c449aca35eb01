import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'
import { Ajv, type Options } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { createRequire } from 'node:module'
import { createValidator } from '../../packages/core/src/call/validate.ts'
import { checkScores, describeReferee, type RefereeData, Score } from '../support/referees.ts'

const require = createRequire(import.meta.url)
const Ajv4 = require('ajv-draft-04') as typeof Ajv
const DRAFT_06 = require('ajv/dist/refs/json-schema-draft-06.json') as object

interface Group {
  readonly description: string
  readonly schema: object | boolean
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[]
}

const DRAFTS = ['draft4', 'draft6', 'draft7', 'draft2019-09', 'draft2020-12'] as const
type Draft = (typeof DRAFTS)[number]
const URIS: Readonly<Partial<Record<Draft, string>>> = {
  draft4: 'http://json-schema.org/draft-04/schema#',
  draft6: 'http://json-schema.org/draft-06/schema#',
  draft7: 'http://json-schema.org/draft-07/schema#',
}

describeReferee('json-schema-test-suite', (data) => {
  it('is judged with the draft named, without one, and by ajv', () => {
    const [named, unnamed] = [new Score('Toolgate'), new Score('Toolgate, no draft named')]
    const ajv = new Score('ajv 8.20.0')
    for (const draft of DRAFTS)
      for (const { name, group } of groupsOf(data, draft)) {
        const { schema } = group
        const $schema = URIS[draft]
        const withDraft = $schema && typeof schema === 'object' ? { $schema, ...schema } : schema
        judge(named, name, group, accepts(withDraft))
        if ($schema) judge(unnamed, name, group, accepts(schema))
        judge(ajv, name, group, ajvAccepts(data, draft, schema))
      }
    for (const score of [named, unnamed])
      for (const [file, names] of Map.groupBy(score.refused, (name) => name.split(': ')[0]))
        console.log(`  ${score.who} refuses, ${file}: ${names.length}`)
    for (const name of [...unnamed.accepted, ...ajv.accepted]) console.log(`  accepted: ${name}`)
    checkScores('json-schema-test-suite', [named, unnamed, ajv], [])
    assert.ok(named.cases > 4000)
  })
})

function* groupsOf(data: RefereeData, draft: Draft): Generator<{ readonly name: string; readonly group: Group }> {
  for (const file of data.list(`tests/${draft}`).filter((one) => one.endsWith('.json')))
    for (const group of data.json(`tests/${draft}/${file}`) as readonly Group[])
      yield { name: `${draft}/${file}`, group }
}

function judge(score: Score, name: string, { description, tests }: Group, accept: (value: unknown) => boolean): void {
  for (const test of tests) score.count(`${name}: ${description}, ${test.description}`, test.valid, accept(test.data))
}

const validate = createValidator()

/** A tool's schema is an object. A schema that cannot be used refuses every input. */
function accepts(schema: object | boolean): (value: unknown) => boolean {
  const used = typeof schema === 'object' ? schema : { allOf: [schema] }
  return (value) => validate(used, value) === undefined
}

function ajvAccepts(data: RefereeData, draft: Draft, schema: object | boolean): (value: unknown) => boolean {
  try {
    const check = ajvFor(data, draft, JSON.stringify(schema)).compile(schema)
    return (value) => passes(check, value)
  } catch {
    return () => false
  }
}

const shared = new Map<Draft, Ajv>()

/** One for each draft, and one of its own for a schema that names itself or refers to others. */
function ajvFor(data: RefereeData, draft: Draft, text: string): Ajv {
  const hasRemotes = text.includes('localhost:1234')
  if (hasRemotes || /"\$?id"/.test(text)) return makeAjv(data, draft, hasRemotes)
  let known = shared.get(draft)
  if (!known) shared.set(draft, (known = makeAjv(data, draft, false)))
  return known
}

/** A schema that refers to itself exhausts its stack. */
function passes(check: (value: unknown) => unknown, value: unknown): boolean {
  try {
    return check(value) === true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Formats are annotations, as for us; the remote schemas of the suite are given. */
function makeAjv(data: RefereeData, draft: Draft, hasRemotes: boolean): Ajv {
  const options: Options = { strict: false, validateFormats: false, logger: false, addUsedSchema: false }
  const Class = { draft4: Ajv4, draft6: Ajv, draft7: Ajv, 'draft2019-09': Ajv2019, 'draft2020-12': Ajv2020 }[draft]
  const ajv = new Class(options) as Ajv
  if (draft === 'draft6') ajv.addMetaSchema(DRAFT_06)
  for (const file of hasRemotes ? remotesOf(data, draft) : []) {
    try {
      ajv.addSchema(data.json(`remotes/${file}`) as object, `http://localhost:1234/${file}`)
    } catch {
      // Another schema has that name, or it is of another draft.
    }
  }
  return ajv
}

const remotes = new Map<Draft, readonly string[]>()

function remotesOf(data: RefereeData, draft: Draft): readonly string[] {
  let files = remotes.get(draft)
  if (!files) {
    const all = ['.', ...data.list('remotes').filter((one) => !/\.json$|^draft|^v1$/.test(one)), draft]
    files = all.flatMap((folder) => jsonIn(data, folder))
    remotes.set(draft, files)
  }
  return files
}

function jsonIn(data: RefereeData, folder: string): readonly string[] {
  if (!existsSync(path.join(data.folder, 'remotes', folder))) return []
  const names = data.list(`remotes/${folder}`).filter((one) => one.endsWith('.json'))
  return names.map((name) => path.posix.join(folder, name))
}
