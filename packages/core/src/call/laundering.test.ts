import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'

/** A page has said an account in a form that nobody compares, and the model has decoded it. */
const page = defineTool({
  namespace: 'web',
  name: 'page',
  execute: () => 'account one-two-three-four-five-six-seven-eight',
})
const book = defineTool({
  namespace: 'book',
  name: 'find',
  execute: ({ of }: { readonly of?: unknown }) =>
    `found for ${([of ?? 'all'].flat() as unknown[]).map(String).join('')}: Bob, account 98765432`,
})
const pay = defineTool({ namespace: 'bank', name: 'pay', execute: () => 'paid' })

/** Returns whether money can be sent to an account once a trusted tool was asked for something. */
async function pays(of: unknown, account: string): Promise<boolean> {
  const gate = createGate({
    tools: [page, book, pay],
    labels: { trusted: ['book:*'] },
    policy: { deny: [{ match: 'bank:pay', input: "!(origin(input.to) in ['user', 'trusted'])" }] },
  })
  const view = await gate.view({ user: 'vera' })
  const run = { id: 'a', userWords: 'Pay Bob, whose address is bob@acme.example.' }
  await view.call({ tool: 'web:page', run })
  await view.call({ tool: 'book:find', input: of === undefined ? {} : { of }, run })
  return (await view.call({ tool: 'bank:pay', input: { to: account }, run })).status === 'done'
}

describe('a trusted tool that repeats its input', () => {
  it('makes an account trusted where its input has no value, or the user’s alone', async () => {
    assert.equal(await pays(undefined, '98765432'), true)
    assert.equal(await pays(null, '98765432'), true)
    assert.equal(await pays('bob@acme.example', '98765432'), true)
  })

  it('launders no account that was sent as text, as a number or as several short ones', async () => {
    for (const sent of ['12345678', 12_345_678, [12, 34, 56, 78], ['12', '34', '56', '78']])
      assert.equal(await pays(sent, '12345678'), false, JSON.stringify(sent))
  })

  it('says nothing that is trusted where a number or a word chose what it says', async () => {
    for (const sent of [7, true, '7']) assert.equal(await pays(sent, '98765432'), false, JSON.stringify(sent))
  })
})
