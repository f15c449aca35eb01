import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '../load-config.ts'
import { ConfigFileError } from '../problems.ts'

const ENV = { DB: 'postgres://toolgate:s3cret%2Fword@db.example.com/toolgate', REDIS: 'redis://:cache-word@cache:6379' }

function load(sections: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-stores-'))
  const file = path.join(folder, 'toolgate.yaml')
  try {
    writeFileSync(file, `policy: [{ allow: ["*"] }]\nservers: {}\n${sections}`)
    return loadConfig(file, { env: ENV })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function problemsOf(sections: string): readonly string[] {
  try {
    load(sections)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigFileError)
    return error.problems.map(({ line, column, path: at, message }) => `${line}:${column} ${at}: ${message}`)
  }
}

describe('stores and replica', () => {
  it('name the engines; the state then has no file', () => {
    const config = load(
      'stores: { postgres: "${DB}", redis: "${REDIS}" }\nreplica: { id: eu-1, url: "http://10.0.0.7:8787" }\n',
    )
    assert.deepEqual(config.stores, { postgres: ENV.DB, redis: ENV.REDIS })
    assert.deepEqual(config.replica, { id: 'eu-1', url: 'http://10.0.0.7:8787' })
    assert.equal(config.state, undefined)
    assert.equal(load('').state?.store, 'sqlite')
  })

  it('keep the passwords out of everything that is shown, also as they are sent', () => {
    const written = load('stores: { postgres: "postgres://toolgate:pa55%2Fword@db/x" }\n').secrets ?? []
    assert.ok(['pa55%2Fword', 'pa55/word'].every((secret) => written.includes(secret)))
    const { secrets = [] } = load('stores: { postgres: "${DB}", redis: "${REDIS}" }\n')
    assert.ok(['s3cret%2Fword', 's3cret/word', 'cache-word'].every((secret) => secrets.includes(secret)))
  })

  for (const [sections, problem] of [
    ['stores: { redis: "redis://cache" }', '3:9 stores.postgres: is missing, expected text'],
    ['stores: { postgres: "db.example.com" }', '3:11 stores.postgres: found another text, expected a URL'],
    [
      'stores: { postgres: "mysql://db/x" }',
      '3:11 stores.postgres: found another text, expected a URL such as postgres://',
    ],
    [
      'stores: { postgres: "postgres://db/x", redis: "http://cache" }',
      '3:40 stores.redis: found another text, expected a URL such as rediss://',
    ],
    [
      'stores: { postgres: "postgres://db/x", postgre: "a" }',
      '3:40 stores.postgre: unknown key, expected one of postgres, redis',
    ],
    ['replica: { id: a }', '3:1 replica: found a replica without stores'],
    [
      'stores: { postgres: "postgres://db/x" }\nreplica: { id: "a b" }',
      '4:16 replica.id: found "a b", expected 1 to 63 letters',
    ],
    [
      'stores: { postgres: "postgres://db/x" }\nreplica: { url: "http://a/b" }',
      '4:17 replica.url: found "http://a/b", expected an origin',
    ],
    [
      'stores: { postgres: "postgres://db/x" }\nstate: { store: sqlite }',
      '4:17 state.store: found "sqlite" beside stores.postgres',
    ],
    [
      'state: { path: a.db }\nstores: { postgres: "postgres://db/x" }',
      '3:16 state.path: found "a.db" beside stores.postgres',
    ],
  ] as const)
    it(`are refused with a line and column: ${sections.replace('\n', ' ')}`, () => {
      const problems = problemsOf(sections)
      assert.ok(problems[0]?.startsWith(problem), problems.join('\n'))
      assert.equal(problems.length, 1)
    })
})
