# shellcheck shell=bash
# Pods of a parallel job: Debian's Open MPI and OpenSSH, a program that sums over all ranks, and keys made for it. Part
# of lab.sh. Needs openmpi-bin, libopenmpi-dev, openssh-server and openssh-client.

readonly LAB_JOB_IMAGE=docker.io/library/job:test
# What each pod of a job runs: the server that mpirun logs in at.
readonly LAB_JOB_COMMAND='mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f /etc/job/sshd_config'

# _lab_job_ssh FOLDER: a host key that all pods have, the key of who logs in, and the configuration of both sides. No
# host with another key is taken.
_lab_job_ssh() {
  ssh-keygen -q -t ed25519 -N '' -C host -f "$1/host" && ssh-keygen -q -t ed25519 -N '' -C job -f "$1/user" || return 1
  printf '* %s\n' "$(cut -d ' ' -f 1,2 "$1/host.pub")" >"$1/known_hosts"
  printf '%s\n' 'Port 2222' 'HostKey /etc/job/host' 'AuthorizedKeysFile /etc/job/user.pub' \
    'PasswordAuthentication no' >"$1/sshd_config"
  printf '%s\n' 'Port 2222' 'IdentityFile /etc/job/user' 'UserKnownHostsFile /etc/job/known_hosts' \
    'StrictHostKeyChecking yes' 'BatchMode yes' 'LogLevel ERROR' >"$1/ssh_config"
}

# lab_job_image_make: the image, as $LAB_DIR/images/job.tar.
lab_job_image_make() {
  local folder=$LAB_DIR/job file package words=()
  mkdir -p "$LAB_DIR/images" "$folder" || return 1
  _lab_job_ssh "$folder" || return 1
  for file in host user user.pub known_hosts sshd_config ssh_config; do words+=(--file "etc/job/$file=$folder/$file"); done
  for package in openmpi-bin openmpi-common libopenmpi3 libpmix2 openssh-server openssh-client; do
    words+=(--package "$package")
  done
  mpicc -O1 -Wall -Wextra -Werror -o "$folder/allreduce" "$LAB_HOME/allreduce.c" || return 1
  "$LAB_HOME/make_image.py" "$LAB_DIR/images/job.tar" "$LAB_JOB_IMAGE" "${words[@]}" "$folder/allreduce"
}

# lab_job_pods: from now on lab_pod_run makes the job's pods.
lab_job_pods() {
  # shellcheck disable=SC2034  # For lab_pod_run, and the next too.
  LAB_POD_IMAGE=$LAB_JOB_IMAGE
  # shellcheck disable=SC2034
  LAB_POD_COMMAND=(sh -c "$LAB_JOB_COMMAND")
}

# lab_job_mpirun HOSTFILE: prints the command for the pod of the first host, a rank on each host of the file. Over TCP
# alone, between pods of one node as well.
lab_job_mpirun() {
  printf '%s\n' mpirun.openmpi --allow-run-as-root --hostfile "$1" --map-by node --bind-to none \
    --mca plm_rsh_agent 'ssh -F /etc/job/ssh_config' --mca pml ob1 --mca btl 'tcp,self' \
    --mca mpi_yield_when_idle 1 /bin/allreduce
}

# lab_job_expect HOSTFILE SAID: whether SAID, what the job printed, has the sum over all ranks, whose addresses are
# those of the file, in its order.
lab_job_expect() {
  local ranks count
  count=$(wc -l <"$1")
  ranks=$(grep '^rank ' <<<"$2" | sort -n -k 2 | awk '{print $3}')
  if [[ $ranks != "$(awk '{print $1}' "$1")" ]]; then
    lab_error "the ranks have the addresses $(paste -s -d ' ' <<<"$ranks"), and the file has $(awk '{print $1}' "$1" | paste -s -d ' ')"
    return 1
  fi
  if ! grep -qx "sum of $count ranks: $((count * (count + 1) / 2)), 0 elements wrong" <<<"$2"; then
    lab_error "the job's sum is not that of $count ranks: $2"
    return 1
  fi
}
