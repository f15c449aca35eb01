/** What every layer answers, strictest last. */
export const OUTCOMES = ['allow', 'ask', 'wait', 'deny'] as const
export type OutcomeWord = (typeof OUTCOMES)[number]

/** The layers of a decision, in the order in which their reasons are told. */
export const LAYER_ORDER = [
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
  'input',
  'hooks',
  'limits',
  'approval',
  'door',
] as const
export type Layer = (typeof LAYER_ORDER)[number]
