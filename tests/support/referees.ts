import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe } from 'node:test'

/** A public suite of test data: where it comes from, and the version whose figures the page has. */
export interface Referee {
  readonly name: string
  /** On github.com. */
  readonly from: string
  readonly commit: string
  /** The folders and files of the suite that the tests read. */
  readonly parts: readonly string[]
}

const ROOT = path.resolve(import.meta.dirname, '../..')

/** The suites, by the folder of their data. */
export const REFEREES = {
  'json-schema-test-suite': {
    name: 'JSON-Schema-Test-Suite',
    from: 'json-schema-org/JSON-Schema-Test-Suite',
    commit: '44401e0',
    parts: ['tests', 'remotes'],
  },
  'json-test-suite': {
    name: 'JSONTestSuite',
    from: 'nst/JSONTestSuite',
    commit: '1ef36fa',
    parts: ['test_parsing'],
  },
  wycheproof: {
    name: 'Wycheproof',
    from: 'C2SP/wycheproof',
    commit: 'dac1dd4',
    parts: [
      'testvectors_v1/json_web_signature_test.json',
      'testvectors_v1/json_web_key_test.json',
      'testvectors_v1/json_web_crypto_test.json',
    ],
  },
  jcs: {
    name: 'RFC 8785',
    from: 'cyberphone/json-canonicalization',
    commit: '19d51d7',
    parts: ['testdata'],
  },
  'uritemplate-test': {
    name: 'uritemplate-test',
    from: 'uri-templates/uritemplate-test',
    commit: '4171dac',
    parts: ['spec-examples.json', 'extended-tests.json', 'negative-tests.json'],
  },
} as const satisfies Readonly<Record<string, Referee>>
export type RefereeFolder = keyof typeof REFEREES

/** Returns the folder that has the data of the suites, one folder for each. */
export function refereesFolder(): string {
  return process.env['TOOLGATE_REFEREES'] ?? path.join(ROOT, '../shared/data/referees')
}

/** The data of one suite. */
export interface RefereeData {
  readonly folder: string
  read(file: string): string
  json(file: string): unknown
  /** Returns the names of the files of a folder, sorted. */
  list(folder: string): readonly string[]
}

/** Describes the tests of a suite. Without its data, the tests are left out, and a line reports it. */
export function describeReferee(key: RefereeFolder, tests: (data: RefereeData) => void): void {
  const { name, commit } = REFEREES[key]
  const folder = path.join(refereesFolder(), key)
  if (!existsSync(folder)) {
    console.log(`left out: ${name} ${commit}, as there is no ${folder}. \`npm run referees\` says how to get it.`)
    return
  }
  const read = (file: string) => readFileSync(path.join(folder, file), 'utf8')
  const list = (inside: string) => readdirSync(path.join(folder, inside)).toSorted()
  describe(`${name} ${commit}`, () => tests({ folder, read, json: (file) => JSON.parse(read(file)), list }))
}

/** The answers of one implementation. */
export class Score {
  readonly who: string
  cases = 0
  passed = 0
  readonly refused: string[] = []
  readonly accepted: string[] = []

  constructor(who: string) {
    this.who = who
  }

  /** Counts one case. `wanted` and `given` say whether it is to be accepted and was. */
  count(name: string, wanted: boolean, given: boolean): void {
    this.cases++
    if (wanted === given) this.passed++
    else (given ? this.accepted : this.refused).push(name)
  }
}

/**
 * Prints the figures of a suite, and checks that docs/guide/referees.md has them and that ours accepted nothing wrongly.
 *
 * @param named the cases that ours accepts, with a reason that the page has
 */
export function checkScores(key: RefereeFolder, scores: readonly Score[], named: readonly string[] = []): void {
  const { name, commit } = REFEREES[key]
  const rows = scores.map(({ who, cases, passed, refused, accepted }) =>
    [name, commit, who, cases, passed, refused.length, accepted.length].map(toCell).join(' | '),
  )
  console.log(['suite | commit | judged | cases | passed | wrongly refused | wrongly accepted', ...rows].join('\n'))
  const own = scores.filter(({ who }) => who.startsWith('Toolgate'))
  assert.ok(own.length > 0 && own.every(({ cases }) => cases > 0))
  for (const { who, accepted } of own) assert.deepEqual(accepted, named, `${who} accepts cases that it must refuse`)
  const page = readFileSync(path.join(ROOT, 'docs/guide/referees.md'), 'utf8').replaceAll(/ +/g, ' ')
  for (const row of rows) assert.ok(page.includes(`| ${row} |`), `docs/guide/referees.md has no row "| ${row} |"`)
}

function toCell(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en-US') : value
}
