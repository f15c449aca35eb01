import { RefusedCall } from '../shared/refused.ts'

/** Mastra rebuilds an error from its JSON where it stores or sends one, so that has to be an object with a message. */
export class RefusedMastraCall extends RefusedCall {
  override toJSON(): unknown {
    return { message: this.message }
  }
}
