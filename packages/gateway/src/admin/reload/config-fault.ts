import { ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import { ApiFault } from '../../model/faults.ts'

/** Runs a reload, and turns a mistake of the configuration into a fault of the API. */
export async function asConfigFault<Result>(reload: () => Promise<Result>): Promise<Result> {
  try {
    return await reload()
  } catch (error) {
    if (error instanceof ConfigFileError || error instanceof ConfigError)
      throw new ApiFault('config_invalid', error.message)
    throw error
  }
}
