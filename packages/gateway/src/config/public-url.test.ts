import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { publicUrlSchema } from './schema/listen.ts'

describe('publicUrl', () => {
  for (const url of [
    'https://tools.example.com',
    'https://tools.example.com:8443',
    'http://127.0.0.1:8787',
    'http://localhost:1',
    'http://[::1]:8787',
  ])
    it(`may be ${url}`, () => assert.equal(publicUrlSchema.parse(url), url))

  for (const url of [
    'http://tools.example.com',
    'http://127.0.0.1.example.com',
    'https://tools.example.com/',
    'https://tools.example.com/gate',
    'https://tools.example.com?x',
    'https://vera:secret@tools.example.com',
    'https://TOOLS.example.com',
    'tools.example.com',
    'javascript:alert(1)',
    'https://',
    '',
  ])
    it(`cannot be ${url || 'empty'}`, () =>
      assert.match(JSON.stringify(publicUrlSchema.safeParse(url).error?.issues), /an https origin without a path/))
})
