import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAuthenticator, type Credential, type CredentialSource, isRefused, toKeyId } from './credential.ts'

const NOBODY = createAuthenticator([])

describe('createAuthenticator', () => {
  it('reports a header that is absent or of another scheme as missing', async () => {
    for (const authorization of [
      undefined,
      '',
      'Basic ZGVtbw==',
      'demo-viewer',
      'Bearerdemo-viewer',
      ' Bearer demo-viewer',
    ])
      assert.deepEqual(
        await NOBODY.authenticate({ authorization }, '/mcp'),
        { refused: 'missing' },
        String(authorization),
      )
  })

  it('reports a bearer header that cannot be a token as malformed', async () => {
    const malformed = [
      'Bearer',
      'Bearer ',
      'Bearer a b',
      'Bearer demo-viewer ',
      'Bearer \u{e9}',
      'Bearer a\0',
      'Bearer a, Bearer b',
      `Bearer ${'x'.repeat(9000)}`,
    ]
    for (const authorization of malformed)
      assert.deepEqual(await NOBODY.authenticate({ authorization }, '/mcp'), { refused: 'malformed' }, authorization)
  })

  it('asks each source in order until one knows the token', async () => {
    const asked: string[] = []
    const source = (name: string, answer: CredentialSource['find']): CredentialSource => ({
      find: (bearer, resource) => {
        asked.push(`${name} ${bearer.token} ${resource}`)
        return answer(bearer, resource)
      },
      current: (id) => (id === name ? credential(name) : undefined),
      renewed: ({ id }) => (id === name ? credential(name) : undefined),
    })
    const joined = createAuthenticator([
      source('first', async () => undefined),
      source('second', async () => undefined),
      source('third', async () => credential('third')),
      source('fourth', async () => credential('fourth')),
    ])
    const answer = await joined.authenticate({ authorization: 'Bearer t' }, '/mcp/app')
    assert.ok(!isRefused(answer) && answer.id === 'third')
    assert.deepEqual(asked, ['first t /mcp/app', 'second t /mcp/app', 'third t /mcp/app'])
    assert.equal(joined.current('fourth')?.id, 'fourth')
    assert.equal(joined.current('none'), undefined)
    assert.equal(joined.renewed(credential('fourth'))?.id, 'fourth')
    assert.equal(joined.renewed(credential('none')), undefined)
  })

  it('keeps the refusal of a source that knows the token, and asks no other', async () => {
    const joined = createAuthenticator([
      {
        find: async () => ({ refused: 'unknown', detail: 'expired' }),
        current: () => undefined,
        renewed: () => undefined,
      },
      { find: async () => credential('other'), current: () => undefined, renewed: () => undefined },
    ])
    assert.deepEqual(await joined.authenticate({ authorization: 'Bearer t' }, '/mcp'), {
      refused: 'unknown',
      detail: 'expired',
    })
  })
})

describe('challenge', () => {
  it('names an error only if a token was presented (RFC 6750 §3.1)', () => {
    assert.equal(NOBODY.challenge('missing', '/mcp'), 'Bearer realm="toolgate"')
    assert.equal(NOBODY.challenge('malformed', '/mcp'), 'Bearer realm="toolgate", error="invalid_token"')
    assert.equal(NOBODY.challenge('unknown', '/mcp'), 'Bearer realm="toolgate", error="invalid_token"')
  })
})

describe('toKeyId', () => {
  it('is the start of the hash of the token, and absent without one', () => {
    assert.equal(toKeyId('Bearer demo-viewer'), toKeyId('bearer  demo-viewer'))
    assert.match(toKeyId('Bearer demo-viewer') ?? '', /^[0-9a-f]{8}$/)
    assert.equal(toKeyId('Basic x'), undefined)
    assert.equal(toKeyId(undefined), undefined)
  })
})

function credential(id: string): Credential {
  return { id, for: 'mcp', caller: { user: id }, issuer: 'key' }
}
