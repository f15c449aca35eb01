import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { coverageText, firstDraft, livesOf, runText, toGrant } from './grant-draft.ts'
import type { MayGrant } from './wire.ts'

const MAY: MayGrant = {
  maxMs: 8 * 3_600_000,
  maxUses: 50,
  covers: ['input', 'fields', 'tool'],
  fields: [
    { name: 'to', value: 'bob@corp', type: 'string' },
    { name: 'amount', value: 150, type: 'number', mayBound: true },
    { name: 'order' },
    { name: '/order/note', value: 'x' },
    { name: 'memo', type: 'string' },
  ],
}

describe('the grant that a person types', () => {
  it('is at first the narrowest one', () => {
    assert.deepEqual(toGrant(firstDraft(MAY), MAY), { grant: { covers: 'input', uses: 10, forMs: 3_600_000 } })
    assert.deepEqual(livesOf({ ...MAY, maxMs: 30 * 60_000 }), [15 * 60_000, 30 * 60_000])
    assert.deepEqual(firstDraft({ ...MAY, covers: ['tool'], maxMs: 60_000, maxUses: 3 }), {
      ...firstDraft(MAY),
      covers: 'tool',
      uses: '3',
      forMs: 60_000,
    })
  })

  it('names the fields that may differ, and says exactly what it lets happen', () => {
    const draft = {
      ...firstDraft(MAY),
      covers: 'fields' as const,
      freedoms: new Map([
        ['amount', 'upTo'],
        ['order', 'any'],
      ] as const),
      bounds: new Map([['amount', '200']]),
      isAnyRun: true,
    }
    const made = toGrant(draft, MAY)
    assert.ok('grant' in made)
    assert.deepEqual(made.grant.fields, { amount: { upTo: 200 }, order: { any: true } })
    assert.equal(
      coverageText(made.grant, MAY),
      'with to = "bob@corp", amount up to 200, any order and everything else as in this call',
    )
    assert.equal(runText(made.grant, 'r1'), ', in any run of theirs')
    assert.equal(runText({}, 'r1'), ', in the run r1 only')
    assert.equal(runText({}, undefined), '')
  })

  it('keeps all digits of a bound', () => {
    const draft = {
      ...firstDraft(MAY),
      covers: 'fields' as const,
      freedoms: new Map([['amount', 'upTo']] as const),
      bounds: new Map([['amount', '9007199254740993']]),
    }
    const made = toGrant(draft, MAY)
    assert.ok('grant' in made)
    assert.deepEqual(made.grant.fields, { amount: { upTo: 9_007_199_254_740_993n } })
  })

  it('is not sent while it would be refused', () => {
    const fields = { ...firstDraft(MAY), covers: 'fields' as const }
    const bounded = (text: string) =>
      toGrant({ ...fields, freedoms: new Map([['amount', 'upTo']] as const), bounds: new Map([['amount', text]]) }, MAY)
    for (const [made, problem] of [
      [toGrant(fields, MAY), /at least one field/],
      [bounded('149'), /at least 150/],
      [bounded('many'), /must be a number/],
      [bounded(''), /must be a number/],
      [toGrant({ ...firstDraft(MAY), uses: '51' }, MAY), /from 1 to 50/],
      [toGrant({ ...firstDraft(MAY), uses: '1.5' }, MAY), /from 1 to 50/],
    ] as const)
      assert.match('problem' in made ? made.problem : '', problem)
  })
})
