import * as z from 'zod'
import { timeoutMs, variableName } from './values.ts'

export const secretCommandsSchema = z
  .strictObject({
    env: z
      .record(variableName, z.string())
      .describe('The variables that the commands get, besides their surroundings: { VAULT_TOKEN: "${VAULT_TOKEN}" }.')
      .exactOptional(),
    timeoutMs: timeoutMs.describe('For each. Default: 10000.').exactOptional(),
  })
  .describe('How the commands of ${command:…} run: at the start and at each reload, without a shell.')
