/** What every layer answers, strictest last. */
export const OUTCOMES = ['allow', 'ask', 'wait', 'deny'] as const
export type OutcomeWord = (typeof OUTCOMES)[number]

/** The layers that are asked before a call, in the order in which their reasons are told. */
export const ASKED_LAYERS = [
  'catalog',
  'policy',
  'scopes',
  'app',
  'visibility',
  'step',
  'availability',
  'locks',
  'preferences',
  'pins',
  'halts',
] as const

/** Those, and what the door finds in a call itself. */
export const LAYER_ORDER = [...ASKED_LAYERS, 'input', 'hooks', 'limits', 'approval', 'door'] as const
export type Layer = (typeof LAYER_ORDER)[number]
