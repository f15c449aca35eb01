import type { PolicyComparison } from '@toolgate/change'

/** Whether a configuration grants no more than another. */
export interface ConfigComparison extends PolicyComparison {
  /** Sections that differ, grant more for all that is known, and are not compared tool by tool. */
  readonly sections: readonly string[]
}
