import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { systemClock } from '@toolgate/core/stores'
import { authenticateKeys } from '../../auth/keyring.ts'
import { createOriginRules } from '../../auth/origin.ts'
import { OPENAPI } from '../../files.ts'
import { createApi } from './api.ts'
import type { ApiDeps } from './deps.ts'

type Methods = Readonly<Record<string, { readonly operationId: string }>>
const text = readFileSync(OPENAPI, 'utf8')
const { paths } = JSON.parse(text) as { readonly paths: Readonly<Record<string, Methods>> }

describe('openapi.json', () => {
  const deps: Partial<ApiDeps> = {
    authenticator: authenticateKeys([]),
    origins: createOriginRules({ host: '127.0.0.1', port: 8787, origins: [] }),
    clock: systemClock,
    agents: {} as NonNullable<ApiDeps['agents']>,
    runs: {} as NonNullable<ApiDeps['runs']>,
    oidc: { publicUrl: 'https://tools.example.com', config: { server: { name: 'corp' } } } as ApiDeps['oidc'],
  }
  const api = createApi(deps as ApiDeps)
  const get = (host: string) => api.fetch(new Request('http://127.0.0.1:8787/api/openapi.json', { headers: { host } }))

  it('has every route of the API with its methods, and nothing else', () => {
    const served = api.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/, '{$1}')}`)
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    assert.deepEqual(described.toSorted(), served.toSorted())
  })

  it('has a name for each operation', () => {
    const names = Object.values(paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId))
    assert.equal(new Set(names).size, names.length)
  })

  it('is served to everybody, but not to another host', async () => {
    const answer = await get('127.0.0.1:8787')
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/json'])
    assert.equal(await answer.text(), text)
    assert.equal((await get('evil.example:8787')).status, 403)
  })
})
