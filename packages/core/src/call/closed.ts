/** Why a call that was under way was stopped: its gate was closed. */
export class GateClosedError extends Error {
  override readonly name = 'GateClosedError'

  constructor() {
    super('the gate was closed')
  }
}
