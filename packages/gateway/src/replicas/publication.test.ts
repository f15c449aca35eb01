import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '@toolgate/testing'
import { memoryState, type StateChange } from '@toolgate/core/stores'
import { idOfText, Publication } from './publication.ts'

const KEY = 'config:published'

function setup() {
  const clock = manualClock()
  const state = memoryState({ clock })
  const listeners: ((change?: StateChange) => void)[] = []
  const followed = {
    ...state,
    subscribe: (listener: (typeof listeners)[number]) => (listeners.push(listener), () => {}),
  }
  const publication = new Publication(followed, clock)
  /** Lets the publication apply the present state. */
  const apply = async () => {
    const applied: Promise<void>[] = []
    for (const listener of listeners) listener({ waitUntil: (promise) => void applied.push(promise) })
    await Promise.all(applied)
  }
  return { clock, state, publication, apply }
}

describe('Publication', () => {
  it('is the text of the first replica, also where two start at once', async () => {
    const { state, clock } = setup()
    const two = ['a', 'b'].map((text) => new Publication(state, clock).open(text))
    const [first, second] = await Promise.all(two)
    assert.deepEqual(first, second)
    assert.equal(first?.id, idOfText(first?.text ?? ''))
  })

  it('is tried once in 5 s where it cannot be run, and the former one runs meanwhile', async () => {
    const { publication, apply, clock } = setup()
    await publication.open('old')
    const tried: string[] = []
    let isBroken = true
    publication.follow(async ({ text, by }) => {
      tried.push(`${text} by ${by}: ${publication.candidate.text}`)
      if (isBroken) throw new Error('no variable')
    })
    await apply()
    await publication.publish('new', 'ann')
    for (let times = 0; times < 2; times++) await assert.rejects(apply(), /cannot be run here: no variable/)
    assert.deepEqual([tried, publication.running.text], [['new by ann: new'], 'old'])
    isBroken = false
    clock.advance(5000)
    await apply()
    assert.deepEqual([tried.length, publication.running.text, publication.candidate.text], [2, 'new', 'new'])
  })

  it('is not confirmed where it is gone, or its text has another hash', async () => {
    const { publication, apply, state } = setup()
    const { id, at } = await publication.open('old')
    publication.follow(() => assert.fail('nothing to run'))
    for (const value of ['text', { id, text: 'other', at }, { id, text: 'old' }]) {
      await state.set(KEY, value)
      await assert.rejects(apply(), /is gone, or cannot be read/)
    }
    await state.take(KEY)
    await assert.rejects(apply(), /is gone, or cannot be read/)
  })
})
