import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Era, Method } from '../calls/method.ts'
import type { McpRequest } from '../calls/request.ts'
import { McpMethods, type MethodDeps } from './methods.ts'

const row = (name: string, more: Partial<Method> = {}): Method => ({
  serve: async () => ({ result: { by: name } }),
  ...more,
  name,
  isTraced: false,
})
const ROWS = [row('shared'), row('old', { era: 'legacy' }), row('new', { era: 'modern' }), row('tools/list')]
const REQUEST = { params: { cursor: 1 }, caller: {} } as object as McpRequest

/** The table of one era, in a gateway whose rooms bring `ROWS`. */
function open(era: Era): McpMethods {
  return new McpMethods({ methods: () => ROWS } as object as MethodDeps, era)
}

describe('McpMethods', () => {
  it('serves the methods that rooms bring for its era, and no others', () => {
    const served = (era: Era) =>
      ['shared', 'old', 'new', 'other'].filter((method) => open(era).answer(method, REQUEST) !== undefined)
    assert.deepEqual(served('legacy'), ['shared', 'old'])
    assert.deepEqual(served('modern'), ['shared', 'new'])
  })

  it('serves tools itself, even if a room brings a method of that name', async () => {
    await assert.rejects(async () => open('modern').answer('tools/list', REQUEST), { name: 'RpcFault' })
  })
})
