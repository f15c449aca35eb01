import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineResource, defineTemplate } from '../tools/items.ts'

const resource = (uri: string) => defineResource({ uri, namespace: 'n', execute: () => ({ contents: [] }) })

/** Reads a URI from a server that has every URI and lists some. */
async function read(uri: string, listed: readonly string[], deny: readonly string[] = []): Promise<string> {
  const items = listed.map((one) =>
    one.includes('{') ? defineTemplate({ uriTemplate: one, namespace: 'n' }) : resource(one),
  )
  const source = { name: 'n', namespaces: ['n'], tools: () => items, unlisted: resource }
  const policy = { allow: ['resource:*:*'], deny: deny.map((one) => `resource:n:${one}`) }
  const gate = createGate({ sources: [source], policy, onWarning: () => {} })
  const view = await gate.view({})
  return (await view.call({ tool: `resource:n:${uri}`, input: { uri } })).status
}

describe('a resource that nobody lists', () => {
  it('is not reached by another spelling of a denied resource', async () => {
    for (const [denied, ...others] of [
      ['notes://h/Secret_(x)', 'notes://h/Secret_%28x%29', 'notes://h/Secret_%2528x%2529', 'notes://h//Secret_(x)'],
      ['notes://private/*', 'notes:///private/a', 'notes:/private/a', 'notes://private%2Fa', 'notes:////private/a'],
      ['notes://h/private/*', 'notes://h/private%2Fa', 'notes://h//private/a', 'notes://h/x/..%2Fprivate/a'],
      [
        'https://h/private',
        'https://h/private/',
        'https://h//private',
        'https://h/%2Fprivate',
        'https://h:443/private',
      ],
    ])
      for (const uri of others) assert.equal(await read(uri, ['notes://{+path}'], [denied as string]), 'refused', uri)
  })

  it('keeps the case of an authority that is a name', async () => {
    assert.equal(await read('jira://PROJ-123', ['jira://{key}']), 'done')
    assert.equal(await read('jira://PROJ-123', ['jira://{key}'], ['jira://PROJ-123']), 'refused')
    assert.equal(await read('https://HOST/a', ['https://host/{x}']), 'refused')
  })

  const table: readonly (readonly [what: string, uri: string, listed: readonly string[], expected: string])[] = [
    ['an empty authority that its server lists', 'memo:///a', ['memo:///{id}'], 'done'],
    ['an empty authority that its server does not list', 'memo:///a', ['memo://{+path}'], 'refused'],
    ['an authority where its server lists empty ones', 'memo://a', ['memo:///{+path}'], 'refused'],
    ['either where its server lists both', 'memo://a/b', ['memo:///{id}', 'memo://h/{id}'], 'done'],
    ['an authority of a scheme that is not listed', 'memo://a', [], 'done'],
    ['a query of a listed resource', 'db://h/a?b=c', ['db://h/a', 'db://h/{+x}'], 'refused'],
    ['a query of a listed resource where a template has some', 'db://h/a?b=c', ['db://h/a', 'db://h/a{?b}'], 'done'],
    ['a query of another resource', 'db://h/x?b=c', ['db://h/a'], 'done'],
    ['the normal form of a listed spelling', 'db://h/a(1)', ['db://h/a%281%29'], 'refused'],
    ['a listed spelling', 'db://h/a%281%29/', ['db://h/a%281%29/'], 'done'],
  ]
  for (const [what, uri, listed, expected] of table)
    it(`${expected === 'done' ? 'may have' : 'has not'} ${what}`, async () =>
      assert.equal(await read(uri, listed), expected))

  it('is decided as a template that matches its path without the query', async () => {
    const listed = ['db://h/{id}/view', 'db://h/{id}/edit']
    assert.equal(await read('db://h/5/view?x=1', listed, ['db://h/{id}/view']), 'refused')
    assert.equal(await read('db://h/5/edit?x=1', listed, ['db://h/{id}/view']), 'done')
  })
})
