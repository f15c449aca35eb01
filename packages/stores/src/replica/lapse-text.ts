import type { ReplicaLapse } from '@toolgate/core/stores'
import type { LeaseState } from './lease.ts'

/** Returns why a replica starts no calls, for people and for callers. */
export function lapseOf(state: LeaseState): ReplicaLapse {
  return {
    text: `this replica starts no call: ${whyLapsed(state)}`,
    message: 'the rules cannot be confirmed now',
  }
}

/** Returns the reason why a lease does not hold, as part of a sentence. */
export function whyLapsed({ problem, ageMs }: LeaseState): string {
  const age =
    ageMs === undefined ? 'it has not been confirmed yet' : `it was last confirmed ${Math.round(ageMs)} ms ago`
  switch (problem?.kind) {
    case 'silent':
      return `the database does not answer (${problem.error}); ${age}`
    case 'behind':
      return `it cannot apply the shared state (${problem.error}); ${age}`
    case 'taken':
      return 'another process has its id'
    case 'older':
      return `the database has revision ${problem.revision}, and had ${problem.seen}: it lost changes. "toolgate replicas accept" goes on with it`
    case 'timeline':
      return `the database has a new timeline, ${problem.timeline}: it may have lost changes. "toolgate replicas accept" goes on with it`
    case undefined:
      return age
  }
}
