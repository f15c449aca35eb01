import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '@toolgate/core'
import { createCatalogPrompt, joinInstructions, renderNotices } from './catalog-prompt.ts'

const gate = createGate({
  tools: { search: {}, remove: { tags: ['danger'] }, pay: {} },
  groups: { money: { tools: ['pay'], hint: 'Ask for "money" to pay.', unlock: 'request' } },
  policy: { deny: [{ match: 'remove', unless: "'admin' in caller.roles", message: 'Removing is for admins.' }] },
})

describe('createCatalogPrompt', () => {
  it('is made once for the same tools and notices, for all callers', async () => {
    let made = 0
    const promptOf = createCatalogPrompt((facts) => `${++made}: ${renderNotices(facts)}`)
    const texts = new Set<string>()
    for (let i = 0; i < 1000; i++)
      texts.add(promptOf(await gate.view({ user: `u${i}`, roles: i % 2 ? ['admin'] : [] })))
    assert.deepEqual([made, texts.size], [2, 2])
  })

  it('distinguishes notices of the same visible definitions', async () => {
    const promptOf = createCatalogPrompt()
    const silent = createGate({ tools: { search: {}, remove: {} }, policy: { deny: ['remove'] } })
    const telling = createGate({
      tools: { search: {}, remove: {} },
      policy: { deny: [{ match: 'remove', message: 'No.' }] },
    })
    const [a, b] = [await silent.view({}), await telling.view({})]
    assert.equal(a.fingerprint, b.fingerprint)
    assert.deepEqual([promptOf(a), promptOf(b)], ['', 'About your tools:\n- No.'])
  })

  it('forgets the least recently used', async () => {
    let made = 0
    const promptOf = createCatalogPrompt(() => String(++made))
    const view = await gate.view({})
    promptOf(view)
    for (let i = 0; i < 300; i++) promptOf(await createGate({ tools: { [`t${i}`]: {} } }).view({}))
    promptOf(view)
    assert.equal(made, 302)
  })
})

describe('joinInstructions', () => {
  it('appends the catalog, and leaves out empty parts', () => {
    assert.equal(joinInstructions('Be brief.', 'About.'), 'Be brief.\n\nAbout.')
    assert.equal(joinInstructions(undefined, 'About.'), 'About.')
    assert.equal(joinInstructions('', ''), undefined)
  })
})
