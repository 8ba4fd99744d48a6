"""The actions of AWS IAM that grant what ACLs grant elsewhere; with IAM, ACLs have no effect.

Example: Describe on ``--cluster`` is ``kafka-cluster:DescribeCluster``.

Source: the Service Authorization Reference, "Apache Kafka APIs for Amazon MSK clusters".
"""

from typing import Final

_ACTIONS: Final = {
    ("Describe", "--cluster"): "DescribeCluster",
    ("DescribeConfigs", "--cluster"): "DescribeClusterDynamicConfiguration",
    ("AlterConfigs", "--cluster"): "AlterClusterDynamicConfiguration",
    ("Describe", "--topic"): "DescribeTopic",
    ("Read", "--topic"): "ReadData",
    ("Delete", "--topic"): "DeleteTopic",
}


def iam_action(operation: str, on: str) -> str:
    """What grants an operation on ``on``, such as "--topic 'a'", with AWS IAM; "" if nothing does.

    Args:
        operation: the operation by kafka-acls.sh.
        on: the option of kafka-acls.sh that names the resource.
    """
    action = _ACTIONS.get((operation, on.partition(" ")[0]))
    return f"kafka-cluster:{action}" if action else ""
