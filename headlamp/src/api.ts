import { clusterRequest } from '@kinvolk/headlamp-plugin/lib/ApiProxy';
import { useEffect, useState } from 'react';
import type { components } from './openapi';

type Answers = components['schemas'];
export type Diagnosis = Answers['Diagnosis'];
export type Suggestions = Answers['Suggestions'];
export type SuggestedChange = Answers['SuggestedChange'];
export type PodNodeGroups = Answers['PodNodeGroups'];
export type NodesAlike = Answers['NodesAlike'];
export type Search = Answers['Search'];
export type NodeRefusalsFound = Answers['NodeRefusalsFound'];
export type InBothLanguages = Answers['InBothLanguages'];

export const AGGREGATED = '/apis/schedulerlog.io/v1alpha1';

export const paths = {
  diagnosis: (namespace: string, pod: string) => `${ofPod(namespace, pod)}/diagnosis`,
  suggestions: (namespace: string, pod: string) => `${ofPod(namespace, pod)}/suggestions`,
  nodeGroups: (namespace: string, pod: string) => `${ofPod(namespace, pod)}/groups`,
  refusalsOfNode: (node: string) =>
    `${AGGREGATED}/schedulerlogs?node=${encodeURIComponent(node)}&group_by=node&since=7d&limit=1`,
};

function ofPod(namespace: string, pod: string): string {
  return `${AGGREGATED}/namespaces/${namespace}/pods/${pod}/schedulerlog`;
}

/** Why there is no answer. */
export type Failure = 'not allowed' | 'not recorded' | 'not installed' | 'not available';

export type Outcome<Answer> =
  | { state: 'loading' }
  | { state: 'answered'; answer: Answer }
  | { state: 'failed'; failure: Failure; message: string };

/**
 * Asks the cluster's API server with the rights of the one who looks.
 * Asked again when `revision` changes; until then the answer before it is shown.
 */
export function useAnswer<Answer>(
  path: string,
  cluster: string,
  revision: string | undefined
): Outcome<Answer> {
  const [found, setFound] = useState<{ path: string; outcome: Outcome<Answer> }>();
  useEffect(() => {
    let isCurrent = true;
    ask<Answer>(path, cluster).then(outcome => isCurrent && setFound({ path, outcome }));
    return () => {
      isCurrent = false;
    };
  }, [path, cluster, revision]);
  return found?.path === path ? found.outcome : { state: 'loading' };
}

async function ask<Answer>(path: string, cluster: string): Promise<Outcome<Answer>> {
  try {
    return { state: 'answered', answer: await get(path, cluster) };
  } catch (error) {
    const { status, message } = error as Error & { status?: number };
    return { state: 'failed', failure: await failureOf(status, cluster), message };
  }
}

async function failureOf(status: number | undefined, cluster: string): Promise<Failure> {
  if (status === 401 || status === 403) return 'not allowed';
  if (status !== 404) return 'not available';
  // An API server without our group answers as one that knows nothing of the pod.
  return get(AGGREGATED, cluster).then(
    () => 'not recorded',
    () => 'not installed'
  );
}

function get(path: string, cluster: string): Promise<any> {
  // Without a right here nobody is logged out of the rest of Headlamp.
  return clusterRequest(path, { cluster, autoLogoutOnAuthError: false });
}
