import { Loader } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Alert } from '@mui/material';
import type { ReactNode } from 'react';
import type { Failure, Outcome } from './api';
import { useTexts, visible } from './text';

interface AnsweredProps<Answer> {
  outcome: Outcome<Answer>;
  children: (answer: Answer) => ReactNode;
}

/** The answer, or in its place that it is loading or why there is none. */
export function Answered<Answer>({ outcome, children }: AnsweredProps<Answer>) {
  const { t } = useTexts();
  if (outcome.state === 'loading') return <Loader title={t('Asking schedulerlog')} />;
  if (outcome.state === 'answered') return <>{children(outcome.answer)}</>;
  return <NoAnswer failure={outcome.failure} message={outcome.message} />;
}

function NoAnswer({ failure, message }: { failure: Failure; message: string }) {
  const { t } = useTexts();
  const texts: Record<Failure, string> = {
    'not allowed': t('You may not read this. The ClusterRole schedulerlog-view has the right.'),
    'not recorded': t('Nothing is recorded: no scheduler has reported a decision.'),
    'not installed': t(
      'This cluster has no schedulerlog API: install the component aggregated-api.'
    ),
    'not available': t('schedulerlog does not answer now. Try again later.'),
  };
  const isExpected = failure === 'not recorded' || failure === 'not installed';
  return (
    <Alert severity={isExpected ? 'info' : 'warning'}>
      {texts[failure]}
      {!isExpected && <div>{visible(message)}</div>}
    </Alert>
  );
}
