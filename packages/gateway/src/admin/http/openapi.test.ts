import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { OPENAPI } from '../../files.ts'
import type { Room } from '../../heart/room.ts'
import { Rooms } from '../../heart/rooms.ts'
import { revisions } from '../revisions/start.ts'
import { apiOf, heartOf, PEOPLE } from '../../testing/heart.ts'

type Methods = Readonly<Record<string, { readonly operationId: string }>>
const text = readFileSync(OPENAPI, 'utf8')
const { paths } = JSON.parse(text) as { readonly paths: Readonly<Record<string, Methods>> }

const fakeReload: Room = { name: 'reload', open: () => ({ service: {} }) }

describe('openapi.json', () => {
  const heart = heartOf({})
  const api = apiOf(heart)
  const get = (host: string) => api.fetch(new Request('http://127.0.0.1:8787/api/openapi.json', { headers: { host } }))

  it('has every route of the API with its methods, and nothing else', async () => {
    const rooms = new Rooms([{ start: revisions }, { start: fakeReload }, ...PEOPLE], heart)
    await rooms.open()
    const opened = await rooms.openForPeople()
    const served = opened
      .flatMap(({ routes = [] }) => routes)
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/, '{$1}')}`)
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
