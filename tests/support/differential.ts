import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type Answer, send, type Sending } from './http.ts'
import { KEYS } from './keys.ts'

/** One request to our code and to the oracle. */
export interface Case {
  readonly shows: string
  readonly sends: Sending
  /** Our answer if it differs from the oracle's: `status outcome`, and the reason. */
  readonly ours?: readonly [string, string]
}

/** The parts of an answer that a client depends on. */
interface Summary {
  readonly status: number
  readonly outcome: string | number
}

interface Compared {
  readonly cases: readonly Case[]
  /** Read when the tests run. */
  readonly urls: () => { readonly ours: string; readonly oracle: string }
  readonly summaryOf: (answer: Answer) => Summary
}

/** Tests that both give the same answer to each request, except where the case has a reason. */
export function compareWithOracle({ cases, urls, summaryOf }: Compared): void {
  for (const { shows, sends, ours } of cases)
    it(ours ? `${shows}: ${ours[0]}, because ${ours[1]}` : shows, async () => {
      const theirs = summaryOf(await send(urls().oracle, sends))
      const headers = { ...sends.headers, authorization: `Bearer ${KEYS.admin}` }
      const own = summaryOf(await send(urls().ours, { ...sends, headers }))
      if (!ours) return assert.deepEqual(own, theirs)
      assert.notDeepEqual(own, theirs, 'it no longer differs: remove the reason')
      assert.equal(`${own.status} ${own.outcome}`, ours[0])
    })
}
